package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

func TestHeld(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	held := box.Held()
	t.Logf("held: %+v", held)
	if held.Tier != "namespaces" || !held.Seccomp {
		t.Errorf("Held = %+v, want namespaces and seccomp", held)
	}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		version = 0
	}
	if held.Landlock != int(version) {
		t.Errorf("Held says landlock %d, want %d, which this kernel has", held.Landlock, version)
	}
	if status := must(t, box, "cat /proc/self/status"); !strings.Contains(status, "Seccomp:\t2\n") {
		t.Error("a command's status does not show a filter of system calls")
	}
}

// A FIFO takes what is written to it, on a read-only mount too: that is for Landlock. It
// cannot tell a workspace from a writable folder that it lies in, hence the view.
func TestReaderCannotWriteToFIFO(t *testing.T) {
	const view = "/var/log"
	_, err := os.Stat(view)
	need(t, err == nil, "no "+view)
	dir := t.TempDir()
	path := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	reader, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(reader) })
	const script = "timeout 5 bash -c 'echo x > fifo'"
	must(t, outside(t, dir), script)
	must(t, open(t, sandbox.Policy{Workspace: dir, View: view, Writable: true}), script)
	box := open(t, sandbox.Policy{Workspace: dir, View: view})
	need(t, box.Held().Landlock > 0, "this kernel has no landlock")
	if out, exit := sh(t, box, script); exit == 0 {
		t.Errorf("%s: exit 0 in a reader's box, want a failure; output:\n%s", script, out)
	}
}
