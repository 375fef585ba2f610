package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"skein/sandbox"
)

// A hidden folder may lie above the workspace and above what the policy shows by name: those
// alone are left of it.
func TestHiddenAboveWhatIsShown(t *testing.T) {
	for _, path := range []string{"/var/log", "/var/lib"} {
		_, err := os.Stat(path)
		need(t, err == nil, "no "+path)
	}
	dir, store := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "f"), "f\n")
	write(t, filepath.Join(store, "o"), "o\n")
	for _, hidden := range [][]string{{"/var", "/var/cache", "/absent"}, {"/absent/too", "/var/cache/", "/var/"}} {
		box := open(t, sandbox.Policy{
			Workspace: dir, View: "/var/log", Writable: true, Hidden: hidden,
			ReadOnly: []sandbox.Mount{{Host: store, Path: "/var/lib"}},
		})
		if got := must(t, box, "pwd; cat f /var/lib/o; ls -A /var"); got != "/var/log\nf\no\nlib\nlog\n" {
			t.Errorf("with %q hidden: %q, want the workspace and the store alone below /var", hidden, got)
		}
		must(t, box, "echo f > f")
		if out, exit := sh(t, box, "mkdir /var/x || echo x > /var/lib/x"); exit == 0 {
			t.Errorf("with %q hidden: a folder was written that is not the workspace; output:\n%s", hidden, out)
		}
	}
}

// A cache is hidden, with the copies of others, save the store that the policy names.
func TestHiddenAroundAStore(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "cache/store/o"), "o\n")
	write(t, filepath.Join(root, "cache/copies/other"), "secret")
	link(t, "cache", filepath.Join(root, "soft"))
	shown := []sandbox.Mount{{Host: filepath.Join(root, "cache/store")}, {Host: root}}
	for _, name := range []string{"cache", "soft"} {
		for _, mounts := range [][]sandbox.Mount{shown, {shown[1], shown[0]}} {
			box := open(t, sandbox.Policy{Workspace: dir, ReadOnly: mounts, Hidden: []string{filepath.Join(root, name), filepath.Join(root, "cache/copies")}})
			if got := must(t, box, "cd "+root+" && ls -A . cache cache/store && cat soft/store/o"); got != ".:\ncache\nsoft\n\ncache:\nstore\n\ncache/store:\no\no\n" {
				t.Errorf("with %s hidden: %q, want the store alone in the cache", name, got)
			}
		}
	}
}

// The same file of a workspace has many names: by the host's path, by the view's, through
// links. Each hides it everywhere, whether it exists in the place that the view covers or not.
func TestHiddenByAnyName(t *testing.T) {
	dir, place := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "state/s"), "secret")
	write(t, filepath.Join(dir, "f"), "f\n")
	soft := filepath.Join(t.TempDir(), "soft")
	link(t, place, soft)
	for _, hidden := range []string{"state", "./state/", dir + "/state", place + "/state", soft + "/state", soft + "/./state/"} {
		p := sandbox.Policy{Workspace: dir, View: soft, Writable: true, Hidden: []string{hidden}, ReadOnly: []sandbox.Mount{{Host: dir}}}
		if got := must(t, open(t, p), "cat f "+dir+"/f; ls -A state "+dir+"/state"); got != "f\nf\n"+dir+"/state:\n\nstate:\n" {
			t.Errorf("with %s hidden: %q, want f twice and two empty folders", hidden, got)
		}
		if _, err := fs.Stat(files(t, p), "state/s"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with %s hidden: Stat by file tools = %v, want ErrNotExist", hidden, err)
		}
	}
}
