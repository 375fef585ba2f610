package sandbox_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"skein/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.IsInit() {
		sandbox.Main()
	}
	goleak.VerifyTestMain(m)
}

func need(t *testing.T, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("SKEIN_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}
