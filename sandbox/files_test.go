package sandbox_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"skein/sandbox"
)

func files(t testing.TB, p sandbox.Policy) *sandbox.Files {
	t.Helper()
	f, err := sandbox.OpenFiles(p)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, f)
}

func closing(t testing.TB, f *sandbox.Files) *sandbox.Files {
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return f
}

// A way opens the files of a policy and tells where on the host what is written is found.
type way func(t *testing.T, p sandbox.Policy) (f *sandbox.Files, root string)

// eachWay runs a test of file tools over every way to get at files: they keep the same
// promises.
func eachWay(t *testing.T, test func(t *testing.T, open way)) {
	through := func(t *testing.T, p sandbox.Policy) (*sandbox.Files, string) {
		box := open(t, p)
		f, err := box.Files()
		if err != nil {
			t.Fatal(err)
		}
		return closing(t, f), box.Root()
	}
	for _, w := range []struct {
		name string
		open way
	}{
		{"host", func(t *testing.T, p sandbox.Policy) (*sandbox.Files, string) { return files(t, p), p.Workspace }},
		{"box", through},
		{"layers", func(t *testing.T, p sandbox.Policy) (*sandbox.Files, string) {
			p.Layers = &sandbox.Layers{}
			return through(t, p)
		}},
	} {
		t.Run(w.name, func(t *testing.T) { test(t, w.open) })
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestFilesRead(t *testing.T) { eachWay(t, filesRead) }

func filesRead(t *testing.T, open way) {
	dir, view, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a/b/file"), "content")
	write(t, filepath.Join(dir, ".skein/state"), "hidden")
	write(t, filepath.Join(elsewhere, "secret"), "secret")
	in := func(name string) string { return filepath.Join(dir, name) }
	link(t, "b/file", in("a/relative"))
	link(t, "../a/b/../../a/b/file", in("a/dotted"))
	link(t, view+"/a/b/file", in("absolute"))
	link(t, view+"/a", in("folder"))
	link(t, view+"/folder/b/../relative", in("chain"))
	link(t, view, in("root"))
	link(t, dir+"/a/b/file", in("by host path"))
	link(t, view+"-not/secret", in("sibling"))
	link(t, filepath.Join(elsewhere, "secret"), in("out"))
	link(t, elsewhere, in("outdir"))
	link(t, "../"+filepath.Base(filepath.Dir(elsewhere)), in("up"))
	link(t, "/proc/self/environ", in("proc"))
	link(t, "loop", in("loop"))
	link(t, ".skein/state", in("to hidden"))
	link(t, "nothing", in("dangling"))
	link(t, "/dev/zero", in("device"))
	if err := syscall.Mkfifo(in("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, _ := open(t, sandbox.Policy{Workspace: dir, View: view, Hidden: []string{".skein"}})
	for _, row := range []struct {
		name string
		want error // nil: it reads as content
	}{
		{"a/b/file", nil},
		{"./a//b/./file", nil},
		{"a/../a/b/file", nil},
		{"a/relative", nil},
		{"a/dotted", nil},
		{"absolute", nil},
		{"folder/b/file", nil},
		{"chain", nil},
		{"root/a/b/file", nil},
		{"by host path", sandbox.ErrOutside},
		{"sibling", sandbox.ErrOutside},
		{"out", sandbox.ErrOutside},
		{"outdir/secret", sandbox.ErrOutside},
		{"up", sandbox.ErrOutside},
		{"proc", sandbox.ErrOutside},
		{"device", sandbox.ErrOutside},
		{"..", sandbox.ErrOutside},
		{"a/../../x", sandbox.ErrOutside},
		{"/etc/passwd", sandbox.ErrOutside},
		{"loop", fs.ErrInvalid},
		{"fifo", fs.ErrInvalid},
		{"a/b/file/x", fs.ErrInvalid},
		{"", fs.ErrInvalid},
		{"a\x00b", fs.ErrInvalid},
		{".skein/state", fs.ErrNotExist},
		{"to hidden", fs.ErrNotExist},
		{"dangling", fs.ErrNotExist},
		{"a/b/absent", fs.ErrNotExist},
	} {
		text, err := fs.ReadFile(f, row.name)
		if !errors.Is(err, row.want) || err == nil && string(text) != "content" {
			t.Errorf("ReadFile(%q) = %q, %v, want %v", row.name, text, err, row.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "open "+row.name+": ") {
			t.Errorf("ReadFile(%q): %q does not name the path first", row.name, err)
		}
	}
	var names []string
	err := fs.WalkDir(f, ".", func(path string, d fs.DirEntry, err error) error {
		if d.Type().IsRegular() || d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if want := []string{".", "a", "a/b", "a/b/file"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("WalkDir = %q, %v, want %q", names, err, want)
	}
	if info, err := f.Lstat("out"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("Lstat(out) = %v, %v, want the link itself", info, err)
	}
	if target, err := f.ReadLink("folder"); err != nil || target != view+"/a" {
		t.Errorf("ReadLink(folder) = %q, %v, want %q", target, err, view+"/a")
	}
}

func TestFilesWrite(t *testing.T) { eachWay(t, filesWrite) }

func filesWrite(t *testing.T, open way) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	write(t, in("script"), "old")
	write(t, in("target"), "old")
	write(t, in(".git/config"), "git")
	if err := os.Chmod(in("script"), 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(in("script"), in("other")); err != nil {
		t.Fatal(err)
	}
	link(t, "target", in("soft"))
	link(t, dir+"/made/by/link", in("to new"))
	link(t, ".git", in("git"))
	link(t, t.TempDir()+"/x", in("out"))
	if err := syscall.Mkfifo(in("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(in("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, root := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	in = func(name string) string { return filepath.Join(root, name) }
	for _, row := range []struct {
		name string
		want error
		at   string // where the content is to be found
		perm fs.FileMode
	}{
		{"script", nil, "script", 0o751},
		{"soft", nil, "target", 0o644},
		{"to new", nil, "made/by/link", 0o600},
		{"new/deep/file", nil, "new/deep/file", 0o600},
		{".git/config", fs.ErrPermission, "", 0},
		{".GIT/config", fs.ErrPermission, "", 0},
		{"sub/.git/hooks/x", fs.ErrPermission, "", 0},
		{"git/config", fs.ErrPermission, "", 0},
		{".skein/config.yaml", fs.ErrPermission, "", 0},
		{"out", sandbox.ErrOutside, "", 0},
		{"../x", sandbox.ErrOutside, "", 0},
		{"fifo", fs.ErrInvalid, "", 0},
		{"sub", fs.ErrInvalid, "", 0},
		{".", fs.ErrInvalid, "", 0},
		{"script/x", fs.ErrInvalid, "", 0},
	} {
		err := f.WriteFile(row.name, []byte("new "+row.name), 0o600)
		if !errors.Is(err, row.want) {
			t.Errorf("WriteFile(%q) = %v, want %v", row.name, err, row.want)
		}
		var hint interface{ Hint() string }
		if err != nil && (!errors.As(err, &hint) || hint.Hint() == "") {
			t.Errorf("WriteFile(%q) = %v: no hint", row.name, err)
		}
		if row.at == "" || err != nil {
			continue
		}
		if got := read(t, in(row.at)); got != "new "+row.name {
			t.Errorf("after WriteFile(%q) %s holds %q", row.name, row.at, got)
		}
		if info, err := os.Stat(in(row.at)); err != nil || info.Mode() != row.perm {
			t.Errorf("after WriteFile(%q) %s has mode %v, %v, want %v", row.name, row.at, info.Mode(), err, row.perm)
		}
	}
	if got := read(t, in("other")) + read(t, in(".git/config")); got != "oldgit" {
		t.Errorf("the other name of a hard link and .git/config hold %q, want them as they were", got)
	}
	if target, err := os.Readlink(in("soft")); err != nil || target != "target" {
		t.Errorf("the link that was written through is %q, %v", target, err)
	}
	leftovers(t, root)
}

func TestFilesOfAReader(t *testing.T) { eachWay(t, filesOfAReader) }

func filesOfAReader(t *testing.T, open way) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "old")
	f, root := open(t, sandbox.Policy{Workspace: dir})
	for _, name := range []string{"f", "new", "deep/new"} {
		if err := f.WriteFile(name, []byte("x"), 0o644); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("WriteFile(%q) = %v, want a refusal that says read-only", name, err)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 || read(t, filepath.Join(root, "f")) != "old" {
		t.Errorf("the workspace of a reader changed: %v, %v", entries, err)
	}
}

// A workspace that is the user's home shows its secrets to file tools no more than to commands.
func TestFilesHideSecrets(t *testing.T) { eachWay(t, filesHideSecrets) }

func filesHideSecrets(t *testing.T, open way) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	write(t, filepath.Join(home, ".ssh/id_ed25519"), "planted key")
	write(t, filepath.Join(home, ".config/gh/hosts.yml"), "planted token")
	write(t, filepath.Join(home, ".config/other"), "visible")
	f, _ := open(t, sandbox.Policy{Workspace: home})
	for _, name := range []string{".ssh/id_ed25519", ".ssh", ".config/gh/hosts.yml"} {
		if _, err := f.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%q) = %v, want fs.ErrNotExist", name, err)
		}
	}
	if text, err := fs.ReadFile(f, ".config/other"); err != nil || string(text) != "visible" {
		t.Errorf("ReadFile(.config/other) = %q, %v, want what is in it", text, err)
	}
}

// A git directory is written by no file tool, whatever it is called, nor is one made.
func TestFilesOfGitDirectories(t *testing.T) { eachWay(t, filesOfGitDirectories) }

func filesOfGitDirectories(t *testing.T, open way) {
	dir := t.TempDir()
	for _, name := range []string{"bare.git/HEAD", "bare.git/objects/x", "bare.git/refs/x", "linked/HEAD", "linked/commondir", "plain/HEAD", "plain/refs/x"} {
		write(t, filepath.Join(dir, name), "x")
	}
	f, _ := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	for _, row := range []struct {
		name string
		want error
	}{
		{"bare.git/hooks/pre-receive", fs.ErrPermission},
		{"bare.git/new", fs.ErrPermission},
		{"bare.git/HEAD", fs.ErrPermission},
		{"linked/config", fs.ErrPermission},
		{"plain/objects/x", fs.ErrPermission}, // it would be one then
		{"plain/commondir", fs.ErrPermission},
		{"plain/refs/y", nil},
		{"plain/HEAD", nil},
		{"new/objects/x", nil},
		{"new/refs/x", nil},
		{"new/HEAD", fs.ErrPermission},
		{"new/other", nil},
	} {
		if err := f.WriteFile(row.name, []byte("x"), 0o644); !errors.Is(err, row.want) {
			t.Errorf("WriteFile(%s) = %v, want %v", row.name, err, row.want)
		}
	}
}

// A write that fails leaves the old content and nothing of its own.
func TestFailedWriteChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "old")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// In a process of its own: the limit would hit what the testing package writes, too.
	if out, exit := sh(t, outside(t, dir), helper+"=grow "+exe+" . f"); exit != 1 || !strings.Contains(out, syscall.EFBIG.Error()) {
		t.Errorf("WriteFile: exit %d, %q, want %v", exit, out, syscall.EFBIG)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("the file holds %q, want the old content", got)
	}
	leftovers(t, dir)
}

// Nobody sees a part of a file that is being written.
func TestWritesAreAtomic(t *testing.T) { eachWay(t, writesAreAtomic) }

func writesAreAtomic(t *testing.T, open way) {
	dir := t.TempDir()
	f, _ := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17)}
	if err := f.WriteFile("f", contents[0], 0o644); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		for i := range 20 {
			if err := f.WriteFile("f", contents[i%2], 0o644); err != nil {
				t.Errorf("WriteFile = %v", err)
			}
		}
	})
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		default:
		}
		got, err := fs.ReadFile(f, "f")
		if err == nil && !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
			t.Fatalf("ReadFile = %d bytes, neither the old content nor the new", len(got))
		}
		var refused interface{ Hint() string }
		if err != nil && !errors.As(err, &refused) { // it changed while it was opened
			t.Fatalf("ReadFile = %v", err)
		}
	}
	wg.Wait()
}

func leftovers(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".skein-") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
