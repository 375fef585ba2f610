package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// What this run tells the one as nobody.
const (
	placeForNobody = "SANDBOX_TEST_PLACE" // a folder outside of /tmp in which nobody may make others
	initForNobody  = "SANDBOX_TEST_INIT"  // the tiny init, which nobody would have to build with a cold cache
)

// tinyInit builds the init that is installed beside the program.
func tinyInit(t testing.TB) string {
	t.Helper()
	if built := os.Getenv(initForNobody); built != "" {
		return built
	}
	needProgram(t, "go")
	program := filepath.Join(t.TempDir(), "skein-init")
	must(t, outside(t, "."), "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "+program+" skein/cmd/skein-init")
	return program
}

// asNobody runs this test binary again as the user nobody, in a folder of its own.
func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sandbox-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.timeout=10m"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(t.Context(), self(t, dir), args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name == "PATH" || name == "SKEIN_REQUIRE" || strings.HasPrefix(name, "LC_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	shown := shownFolder(t)
	must(t, outside(t, "."), fmt.Sprintf("chown %d:%[1]d %s && cp %s %[2]s/skein-init", nobody, shown, tinyInit(t)))
	cmd.Env = append(cmd.Env, "HOME="+dir, "TMPDIR="+dir, placeForNobody+"="+shown, initForNobody+"="+filepath.Join(shown, "skein-init"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the suite as nobody: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}
