package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"skein/sandbox"
)

// An init that ends at once is told of by how it ended, whoever notices first.
func TestOpenTellsHowTheInitEnded(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	init := filepath.Join(t.TempDir(), "init")
	write(t, init, "#!/bin/sh\necho no init >&2\necho at all >&2\nexit 3\n")
	if err := os.Chmod(init, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: t.TempDir(), Init: init})
		if !errors.Is(err, sandbox.ErrNoBox) || !strings.HasSuffix(err.Error(), "the box has ended: its init: exit status 3: no init") {
			t.Fatalf("Open with an init that exits = %v, want how it did, and its first word", err)
		}
	}
}

// A workspace that its owner cannot reach is the policy's fault: other boxes can be had.
func TestOpenRefusesWhatItsUserCannotEnter(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	if os.Geteuid() != 0 {
		t.Skip("another user's tree can be made by root only")
	}
	const other = 65534
	// Where the box shows the folders above a workspace as they are.
	above, err := os.MkdirTemp("/usr/local", "skein-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	dir := filepath.Join(above, "p", "w")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, other, other)); err != nil {
		t.Fatal(err)
	}
	for _, writable := range []bool{false, true} {
		policy := sandbox.Policy{Workspace: dir, Writable: writable}
		if err := os.Chmod(above, 0o755); err != nil {
			t.Fatal(err)
		}
		must(t, open(t, policy), "ls")
		if err := os.Chmod(above, 0o700); err != nil {
			t.Fatal(err)
		}
		box, err := sandbox.Open(t.Context(), policy)
		if err == nil {
			_ = box.Close()
		}
		var hint interface{ Hint() string }
		if !errors.Is(err, os.ErrPermission) || errors.Is(err, sandbox.ErrNoBox) || !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "owner of the workspace") {
			t.Errorf("Open(writable %v) = %v, want the policy at fault, and a hint", writable, err)
		}
	}
}

// What is scarce is named: namespaces are there.
func TestOpenWithFewDescriptors(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `ulimit -n 10; exec "$0" "$1"`, exe, t.TempDir())
	cmd.Env = append(os.Environ(), helper+"=open")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ulimit -n") || strings.Contains(string(out), "user namespaces") {
		t.Errorf("Open with 10 descriptors: %v, %q, want the limit named", err, out)
	}
}

// Root of a namespace of its own, as in a container without root, has boxes, too.
func TestOpenAsRootOfANamespace(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, t.TempDir())
	cmd.Env = append(os.Environ(), helper+"=open")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("Open as root of a namespace: %v\n%s", err, out)
	}
}
