package sandbox_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// stack makes folders for layers, by names of any bytes: a base, one above it, and what takes
// changes.
func stack(t *testing.T) (base string, l *sandbox.Layers) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a:b,c\\d e\n\xff")
	base = filepath.Join(dir, "ba,se:")
	l = &sandbox.Layers{Above: []string{filepath.Join(dir, "del:ta")}, Upper: filepath.Join(dir, "up,:\\per"), Work: filepath.Join(dir, "work\\,")}
	for _, d := range []string{base, l.Above[0], l.Upper, l.Work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(base, "both"), "base\n")
	write(t, filepath.Join(base, "gone"), "base\n")
	write(t, filepath.Join(base, "sub/f"), "base\n")
	write(t, filepath.Join(l.Above[0], "both"), "above\n")
	if err := unix.Mknod(filepath.Join(l.Above[0], "gone"), unix.S_IFCHR, 0); err != nil {
		t.Fatal(err) // the kernel's mark of what a layer takes away
	}
	return base, l
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// What a command changes in layers stands in the upper one, and nowhere else; the next box
// goes on from there, and one that is not writable sees it.
func TestLayers(t *testing.T) {
	base, l := stack(t)
	view, private := t.TempDir(), filepath.Join(repository(t), ".git")
	p := sandbox.Policy{Workspace: base, Layers: l, View: view, Writable: true, GitDir: private}
	box := open(t, p)
	if got := must(t, box, "pwd; cat both sub/f; ls -A; git log --format=%s"); got != view+"\nabove\nbase\n.git\nboth\nsub\nfirst\n" {
		t.Errorf("the box shows %q", got)
	}
	must(t, box, "echo new > new; echo more >> both; rm sub/f; rmdir sub; mkdir sub; echo x > sub/g; git add -A; git commit -qm second", hermetic...)
	if got := read(t, filepath.Join(box.Root(), "both")); got != "above\nmore\n" {
		t.Errorf("Root holds %q in both, want what the box shows", got)
	}
	write(t, filepath.Join(box.Root(), "by host"), "h\n")
	if got := must(t, box, "cat 'by host'"); got != "h\n" {
		t.Errorf("what was written through Root reads as %q inside", got)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, l.Upper); !slices.Equal(got, []string{".git", "both", "by host", "new", "sub"}) {
		t.Errorf("the upper layer holds %q", got)
	}
	if got := read(t, filepath.Join(base, "both")) + read(t, filepath.Join(base, "sub/f")) + read(t, filepath.Join(l.Above[0], "both")); got != "base\nbase\nabove\n" {
		t.Errorf("the lower layers hold %q, want them as they were", got)
	}
	if got := must(t, outside(t, filepath.Dir(private)), "git log --format=%s"); got != "second\nfirst\n" {
		t.Errorf("log of the git directory = %q", got)
	}

	again := open(t, p)
	p.Writable = false
	reader := open(t, p) // at the same time
	for name, box := range map[string]*sandbox.Box{"writer": again, "reader": reader} {
		if got := must(t, box, "cat both; ls -A . sub"); got != "above\nmore\n.:\n.git\nboth\nby host\nnew\nsub\n\nsub:\ng\n" {
			t.Errorf("the next box of a %s shows %q", name, got)
		}
	}
	must(t, again, "echo x > both")
	for _, script := range []string{"echo x > both", "echo x > fresh", "rm new", "chmod 600 new"} {
		if out, exit := sh(t, reader, script); exit == 0 {
			t.Errorf("%s by a reader: exit 0, want a failure; output:\n%s", script, out)
		}
	}
}

// Without a place for them changes end with the box.
func TestLayersInMemory(t *testing.T) {
	base, l := stack(t)
	p := sandbox.Policy{Workspace: base, Writable: true, Layers: &sandbox.Layers{Above: l.Above}}
	box := open(t, p)
	must(t, box, "echo x > both && rm -r sub && test ! -e gone")
	if got := read(t, filepath.Join(base, "both")) + read(t, filepath.Join(l.Above[0], "both")); got != "base\nabove\n" {
		t.Errorf("the layers hold %q, want them as they were", got)
	}
	if got := must(t, open(t, p), "cat both sub/f"); got != "above\nbase\n" {
		t.Errorf("the next box shows %q, want it as the first one was", got)
	}
	p.Writable = false
	for _, above := range [][]string{l.Above, nil} {
		p.Layers.Above = above
		if out, exit := sh(t, open(t, p), "echo x > both"); exit == 0 {
			t.Errorf("a reader of layers %q wrote; output:\n%s", above, out)
		}
	}
}

// Only the scope of layers can be changed, and no layer leads it elsewhere.
func TestLayersWithScope(t *testing.T) {
	base, l := stack(t)
	write(t, filepath.Join(l.Above[0], "sub2/f"), "above\n")
	p := sandbox.Policy{Workspace: base, Layers: l, Writable: true, Scopes: []string{"sub", "sub2"}}
	box := open(t, p)
	must(t, box, "echo x > sub/f; mkdir sub/d; mv sub/f sub/d/f; echo x > sub2/f")
	for _, script := range []string{"echo x > both", "echo x > new", "mv sub s", "rmdir sub/d/.. || rm -rf sub"} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0, want a failure; output:\n%s", script, out)
		}
	}
	if got := names(t, l.Upper); !slices.Equal(got, []string{"sub", "sub2"}) {
		t.Errorf("the upper layer holds %q, want the scopes alone", got)
	}
	link(t, "/etc", filepath.Join(l.Above[0], "soft"))
	for _, scope := range []string{"soft", "absent", "both"} {
		p.Scopes = []string{scope}
		if box, err := sandbox.Open(t.Context(), p); err == nil {
			_ = box.Close()
			t.Errorf("Open with scope %s = nil, want a refusal", scope)
		}
	}
}

// A layer that cannot be used is no box.
func TestLayersRefused(t *testing.T) {
	base, l := stack(t)
	outsider := t.TempDir()
	write(t, filepath.Join(base, "file"), "")
	link(t, outsider, filepath.Join(filepath.Dir(base), "soft"))
	for _, row := range []struct {
		layers sandbox.Layers
		want   string
		box    bool // the kernel is asked
	}{
		{sandbox.Layers{Above: []string{"/nowhere"}}, "no such file", false},
		{sandbox.Layers{Above: slices.Repeat(l.Above, 17)}, "at most 16", false},
		{sandbox.Layers{Upper: l.Upper}, "go together", false},
		{sandbox.Layers{Upper: l.Upper, Work: l.Upper}, "two folders", false},
		{sandbox.Layers{Upper: l.Upper, Work: outsider}, "two folders", false},
		{sandbox.Layers{Upper: l.Upper, Work: filepath.Join(filepath.Dir(base), "soft")}, "two folders", false},
		{sandbox.Layers{Above: []string{filepath.Join(base, "file")}}, "in layers", true},
		{sandbox.Layers{Upper: base, Work: l.Work}, "in layers", true},
	} {
		box, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: base, Writable: true, Layers: &row.layers})
		if err == nil {
			_ = box.Close()
		}
		var hint interface{ Hint() string }
		if err == nil || !strings.Contains(err.Error(), row.want) || errors.Is(err, sandbox.ErrNoBox) != row.box || !errors.As(err, &hint) {
			t.Errorf("Open with layers %+v = %v, want an error with a hint that says %q", row.layers, err, row.want)
		}
	}
	if _, err := sandbox.OpenFiles(sandbox.Policy{Workspace: base, Layers: l}); err == nil {
		t.Error("OpenFiles of layers = nil, want a refusal: they are one only in a box")
	}
}

// A file that many commands need may be a socket of a daemon: below an overlay nobody answers.
func TestLayersHideSockets(t *testing.T) {
	base, program := t.TempDir(), self(t, t.TempDir())
	bound := filepath.Join(base, "bound")
	var lc net.ListenConfig
	socket, err := lc.Listen(t.Context(), "unix", bound)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	if err := os.Rename(bound, filepath.Join(base, "socket")); err != nil { // else it would be hidden
		t.Fatal(err)
	}
	dial := helper + "=dial " + program + " unix socket"
	must(t, outside(t, base), dial)
	p := sandbox.Policy{Workspace: base, Writable: true, Layers: &sandbox.Layers{}, ReadOnly: []sandbox.Mount{{Host: filepath.Dir(program)}}}
	box := open(t, p)
	must(t, box, "test -S socket")
	if out, exit := sh(t, box, dial); exit == 0 {
		t.Errorf("a socket of the host answers through layers; output:\n%s", out)
	}
}

// The files of a box see its layers as one, and hide what it hides.
func TestFilesOfLayers(t *testing.T) {
	base, l := stack(t)
	write(t, filepath.Join(l.Above[0], ".skein/state"), "hidden")
	box := open(t, sandbox.Policy{Workspace: base, Layers: l, Writable: true, Hidden: []string{".skein"}})
	f, err := box.Files()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(f, "both"); err != nil || string(text) != "above\n" {
		t.Errorf("ReadFile(both) = %q, %v, want the layer above", text, err)
	}
	for _, name := range []string{"gone", ".skein/state", ".skein"} {
		if _, err := fs.ReadFile(f, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadFile(%s) = %v, want fs.ErrNotExist", name, err)
		}
	}
	if err := f.WriteFile("sub/f", []byte("tool\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := must(t, box, "cat sub/f; echo command > sub/g"); got != "tool\n" {
		t.Errorf("a command sees %q after a file tool wrote", got)
	}
	if text, err := fs.ReadFile(f, "sub/g"); err != nil || string(text) != "command\n" {
		t.Errorf("ReadFile(sub/g) = %q, %v, want what a command wrote", text, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Files(); !errors.Is(err, sandbox.ErrEnded) {
		t.Errorf("Files of a closed box = %v, want ErrEnded", err)
	}
	if got := read(t, filepath.Join(base, "sub/f")); got != "base\n" {
		t.Errorf("the base holds %q, want it as it was", got)
	}
}

// A command that moves the folders on the way to the workspace leads nobody else astray.
func TestFilesStayInTheWorkspace(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "f"), "mine")
	write(t, filepath.Join(elsewhere, "f"), "secret")
	box := open(t, sandbox.Policy{Workspace: dir, View: "/tmp/way/to/view", Writable: true})
	must(t, box, "cd /; mv /tmp/way /tmp/moved; mkdir /tmp/way; ln -s "+filepath.Dir(elsewhere)+" /tmp/way/to; mkdir /tmp/way/x; ls -d /tmp/moved/to/view")
	f, err := box.Files()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(closing(t, f), "f"); err != nil || string(text) != "mine" {
		t.Errorf("ReadFile(f) = %q, %v, want the workspace's", text, err)
	}
	if got := read(t, filepath.Join(box.Root(), "f")); got != "mine" {
		t.Errorf("Root leads to a file that holds %q", got)
	}
}

// Root may stack layers of a tree that is somebody else's: the owner's commands change it.
func TestRootStacksLayersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a tree to somebody else")
	}
	base, l := stack(t)
	const owner = 1234
	err := filepath.WalkDir(filepath.Dir(base), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, owner, owner))
	})
	if err != nil {
		t.Fatal(err)
	}
	p := sandbox.Policy{Workspace: base, Layers: l, Writable: true}
	box := open(t, p)
	if got := must(t, box, "id -u; echo x >> both; rm sub/f; echo n > sub/n; mkdir d; cat both"); got != "1234\nabove\nx\n" {
		t.Errorf("output = %q", got)
	}
	f, err := box.Files()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("made/by/tool", []byte("t"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, box, "echo u >> made/by/tool; echo v > made/by/command; echo w > both")
	if err := errors.Join(f.Close(), box.Close()); err != nil {
		t.Fatal(err)
	}
	must(t, open(t, p), "test -e d && echo y >> both && rm -r made") // what the kernel left is no hindrance
	if uid := must(t, outside(t, l.Upper), "stat -c %u both d sub/n"); uid != "1234\n1234\n1234\n" {
		t.Errorf("owners of what was changed = %q", uid)
	}
}
