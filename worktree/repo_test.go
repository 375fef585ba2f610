package worktree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// need skips a test that lacks something, or fails where everything is required.
func need(t *testing.T, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("SKEIN_REQUIRE") == "all":
		t.Fatalf("required: %s", why)
	default:
		t.Skip(why)
	}
}

// ordinary runs the test as an ordinary user, in a process of its own, where this one
// is root's; root reads and writes everything. It reports whether it did.
func ordinary(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	dir, err := os.MkdirTemp("", "ordinary") // not t.TempDir, which only root may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/test", program, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), dir+"/test", "-test.run=^"+t.Name()+"$")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
	return true
}

// alone runs the test in a process of its own. It reports whether it did.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "SKEIN_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return false
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a process of its own: %v\n%s", err, out)
	}
	return true
}

// A lab is a repository of its own for one test, with nobody's configuration.
type lab struct {
	*testing.T
	root  string
	cache string
	fresh string // why the copies of this test's tree cannot be made of layers; "" if they can be
}

// newLab makes an empty repository.
func newLab(t *testing.T) *lab {
	t.Helper()
	_, err := exec.LookPath("git")
	need(t, err == nil, "git is not installed")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, root: root, cache: filepath.Join(home, "cache", "skein")}
	l.git("init", "-q", "--template=", "-b", "main")
	l.git("config", "user.name", "Ada")
	l.git("config", "user.email", "ada@example.org")
	return l
}

// home is the user's home folder, whatever a test sets HOME to.
func (l *lab) home() string { return filepath.Dir(filepath.Dir(l.cache)) }

// git runs git in the repository.
func (l *lab) git(args ...string) string {
	l.Helper()
	return l.gitIn(l.root, args...)
}

func (l *lab) gitIn(dir string, args ...string) string {
	l.Helper()
	out, err := l.tryGit(dir, args...)
	if err != nil {
		l.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (l *lab) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(l.Context(), "git", args...)
	cmd.Dir = dir
	if pid, inside, ok := shown(dir); ok { // seen from here that is no folder git could find again
		in := []string{"-t", pid, "-U", "-m", "--preserve-credentials", "git", "-C", inside}
		cmd = exec.CommandContext(l.Context(), "nsenter", append(in, args...)...)
	}
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// userConfig writes the user's own configuration.
func (l *lab) userConfig(text string) {
	l.Helper()
	l.write(os.Getenv("HOME"), ".gitconfig", text)
}

// write writes a file below dir, with the folders it needs.
func (l *lab) write(dir, name, text string) {
	l.Helper()
	l.writeMode(dir, name, text, 0o644)
}

func (l *lab) writeMode(dir, name, text string, mode fs.FileMode) {
	l.Helper()
	path := dir + "/" + name
	l.check(os.MkdirAll(filepath.Dir(path), 0o755))
	_ = os.Remove(path)
	l.check(os.WriteFile(path, []byte(text), mode))
	l.check(os.Chmod(path, mode))
}

func (l *lab) link(dir, name, target string) {
	l.Helper()
	_ = os.Remove(dir + "/" + name)
	l.check(os.Symlink(target, dir+"/"+name))
}

func (l *lab) remove(dir string, names ...string) {
	l.Helper()
	for _, name := range names {
		l.check(os.RemoveAll(dir + "/" + name))
	}
}

// rename renames a folder as mv does: an overlay leaves the copying to its user.
func (l *lab) rename(from, to string) {
	l.Helper()
	err := os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		// Not by os.CopyFS, which knows no names but UTF-8.
		err = exec.CommandContext(l.Context(), "mv", "--", from, to).Run()
	}
	l.check(err)
}

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// commit commits everything.
func (l *lab) commit() string {
	l.Helper()
	l.git("add", "-A")
	l.git("commit", "-q", "-m", "work")
	return l.git("rev-parse", "HEAD")
}

// open opens the repository and closes it at the end of the test.
func (l *lab) open(o worktree.Options) *worktree.Repo {
	l.Helper()
	return l.openAt(l.root, o)
}

func (l *lab) openAt(dir string, o worktree.Options) *worktree.Repo {
	l.Helper()
	if o.Cache == "" {
		o.Cache = l.cache
	}
	if o.Layers == nil {
		o.Layers = layers()
	}
	if o.Box == nil {
		o.Box = boxes()
	}
	r, err := worktree.Open(l.Context(), dir, o)
	if err != nil {
		l.Fatalf("Open(%s) = %v, want no error", dir, err)
	}
	return r
}

func (l *lab) snapshot(tree *worktree.Tree) worktree.Snapshot {
	l.Helper()
	s, err := tree.Snapshot(l.Context())
	if err != nil {
		l.Fatalf("Snapshot = %v, want no error", err)
	}
	return s
}

func (l *lab) copy(r *worktree.Repo, s worktree.Snapshot, name string) *worktree.Copy {
	l.Helper()
	c, err := r.Copy(l.Context(), s, name)
	if err != nil {
		l.Fatalf("Copy(%s) = %v, want no error", name, err)
	}
	l.madeOfLayers(c)
	l.attach(c)
	return c
}

// madeOfLayers fails where copies shall be made of layers and this one is not, unless the test
// said that its tree cannot be.
func (l *lab) madeOfLayers(c *worktree.Copy) {
	l.Helper()
	asked := c.Backend == worktree.Fresh && c.Why == ""
	if want := os.Getenv(onOverlay) != "" && l.fresh == ""; want && c.Backend != worktree.Overlay && !asked {
		l.Errorf("copy %s is %s (%s), want one of layers", c.Name, c.Backend, c.Why)
	}
}

func (l *lab) collect(c *worktree.Copy) worktree.Change {
	l.Helper()
	root := c.Root
	c.Attach("") // its box is closed when a copy is collected
	defer c.Attach(root)
	ch, err := c.Collect(l.Context(), "work of "+c.Name+"\n")
	if err != nil {
		l.Fatalf("Collect(%s) = %v, want no error", c.Name, err)
	}
	return ch
}

func (l *lab) merge(r *worktree.Repo, onto string, ch worktree.Change) string {
	l.Helper()
	id, err := r.Merge(l.Context(), onto, ch)
	if err != nil {
		l.Fatalf("Merge = %v, want no error", err)
	}
	return id
}

func (l *lab) apply(tree *worktree.Tree, base, merged string) worktree.Applied {
	l.Helper()
	a, err := tree.Apply(l.Context(), base, merged)
	if err != nil {
		l.Fatalf("Apply = %v, want no error", err)
	}
	return a
}

func (l *lab) close(r *worktree.Repo) {
	l.Helper()
	l.closeKeeping(r)
}

// closeKeeping closes the repository and returns what was kept.
func (l *lab) closeKeeping(r *worktree.Repo) []worktree.Recovered {
	l.Helper()
	kept, err := r.Close(l.Context())
	for _, rec := range kept {
		err = errors.Join(err, rec.Err)
	}
	if err != nil {
		l.Errorf("Close = %v, want no error", err)
	}
	return kept
}

// drop removes a copy and returns the folder with what was left out.
func (l *lab) drop(c *worktree.Copy) string {
	l.Helper()
	left, err := c.Remove(l.Context())
	if err != nil {
		l.Fatalf("Remove = %v, want no error", err)
	}
	return left
}

// change makes one change to a snapshot of r by edit, in a copy of that name.
func (l *lab) change(r *worktree.Repo, s worktree.Snapshot, name string, edit func(dir string)) worktree.Change {
	l.Helper()
	c := l.copy(r, s, name)
	edit(c.Root)
	ch := l.collect(c)
	l.drop(c)
	return ch
}

// files describes everything below root save .git at its top and the names in skip.
func (l *lab) files(root string, skip ...string) map[string]string {
	l.Helper()
	found := map[string]string{}
	l.check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root+"/")
		if name == ".git" || slices.Contains(skip, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			found[name] = fmt.Sprintf("%v %q", info.Mode().Perm()&0o100 != 0, text)
			return err
		default:
			found[name] = info.Mode().String()
		}
		return nil
	}))
	return found
}

// A reporter is a *testing.T or a *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// same compares two such descriptions.
func same(t reporter, what string, got, want map[string]string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(got))
	for name := range want {
		if _, ok := got[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%s: %q = %s, want %s", what, name, got[name], want[name])
		}
	}
}

// users is everything of the user's that must not change by itself.
func (l *lab) users() string {
	l.Helper()
	index, _ := os.ReadFile(filepath.Join(l.root, ".git", "index"))
	refs := l.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash", "refs/remotes")
	head, _ := l.tryGit(l.root, "reflog", "show", "--all")
	return fmt.Sprintf("%x\n%s\n%s\n%s\n%s", index, l.git("status", "--porcelain", "-z", "--untracked-files=all"),
		refs, head, l.git("worktree", "list"))
}

// dirty makes the repository with every kind of uncommitted work.
func (l *lab) dirty() {
	l.Helper()
	for _, name := range []string{"same", "staged", "unstaged", "both", "deleted", "unlinked", "mode", "typed"} {
		l.write(l.root, name, name+"\n")
	}
	l.write(l.root, "dir/kept", "kept\n")
	l.write(l.root, "dir/gone", "gone\n")
	l.write(l.root, "file-to-dir", "file\n")
	l.write(l.root, "dir-to-file/x", "x\n")
	l.write(l.root, "dir-to-link/x", "x\n")
	l.write(l.root, ".gitignore", "*.log\nbuild/\n")
	l.write(l.root, "binary", "a\x00b")
	l.link(l.root, "link", "same")
	l.commit()
	l.write(l.root, "staged", "staged 2\n")
	l.write(l.root, "both", "both 2\n")
	l.write(l.root, "new-staged", "new\n")
	l.git("add", "staged", "both", "new-staged")
	l.write(l.root, "both", "both 3\n")
	l.write(l.root, "unstaged", "unstaged 2\n")
	l.git("rm", "-q", "deleted")
	l.remove(l.root, "unlinked", "dir/gone", "file-to-dir", "dir-to-file", "dir-to-link")
	l.write(l.root, "file-to-dir/x", "x\n")
	l.write(l.root, "dir-to-file", "file\n")
	l.link(l.root, "dir-to-link", "dir")
	l.writeMode(l.root, "mode", "mode\n", 0o755)
	l.link(l.root, "typed", "nowhere")
	l.link(l.root, "link", "dir/kept")
	l.write(l.root, "binary", "a\x00c\r\n")
	for _, name := range []string{"new", "with space", "new\nline", `quo"te'\`, "-dash", ":colon", "*.star", "bad\xff\xfeutf8", "dir/new", "ünï/cödé"} {
		l.write(l.root, name, "text of "+name)
	}
	l.write(l.root, "ignored.log", "log")
	l.write(l.root, "build/out", "out")
	l.write(l.root, ".skein/config.yaml", "x: y\n")
}
