package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// placeForNobody names a folder outside of /tmp in which nobody may make others.
const placeForNobody = "SANDBOX_TEST_PLACE"

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
	args := []string{"-test.timeout=5m"}
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
	if err := os.Chown(shown, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "HOME="+dir, "TMPDIR="+dir, placeForNobody+"="+shown)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the suite as nobody: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}
