package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"skein/sandbox/boxinit"
)

// Sockets that cannot be listed cannot be hidden: then there is no box.
func TestSocketsUnknown(t *testing.T) {
	p := Policy{Workspace: t.TempDir()}
	if list, err := sockets(filepath.Join(p.Workspace, "absent"), p, p.Workspace); err == nil {
		t.Errorf("sockets of no table = %q, want an error", list)
	}
	if _, err := sockets(socketTable, p, p.Workspace); err != nil {
		t.Errorf("control: sockets = %v, want no error", err)
	}
}

// Where names are looked up is often told by a link into /run, which a box has for itself.
func TestResolvConf(t *testing.T) {
	dir, err := os.MkdirTemp("/run", "skein-test-")
	if err != nil {
		t.Skipf("only who may write to /run: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	target, plain := filepath.Join(dir, "stub"), filepath.Join(t.TempDir(), "plain")
	link := filepath.Join(t.TempDir(), "resolv.conf")
	for _, path := range []string{target, plain} {
		if err := os.WriteFile(path, []byte("nameserver 127.0.0.53\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{link: target, plain: "", dir + "/absent": ""} {
		got := ""
		resolvConf(file, func(m boxinit.Mount) { got = m.Source + m.Target })
		if got != want+want {
			t.Errorf("resolvConf(%s) shows %q, want %q", file, got, want)
		}
	}
}
