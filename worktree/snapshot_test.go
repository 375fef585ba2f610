package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

func TestCopyEqualsDirtyTree(t *testing.T) {
	l := newLab(t)
	l.dirty()
	before := l.users()
	want := l.files(l.root, "ignored.log", "build", ".skein")
	r := l.open(worktree.Options{Session: "s", Run: "1"})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), want)
	if got := l.users(); got != before {
		t.Errorf("the user's index, status, refs and logs = %s\nwant %s", got, before)
	}
	if got := l.gitIn(c.Root, "status", "--porcelain"); got != "" {
		t.Errorf("git status in the copy = %q, want a clean tree", got)
	}
	if got := l.collect(c); !got.Empty || len(got.Left) > 0 {
		t.Errorf("Collect of an untouched copy = %+v, want an empty change", got)
	}
	l.close(r)
	if got := l.users(); got != before {
		t.Errorf("after Close: the user's index, status, refs and logs = %s\nwant %s", got, before)
	}
	if got := l.git("for-each-ref", "refs/skein"); got != "" {
		t.Errorf("after Close: refs/skein = %q, want none", got)
	}
	l.git("fsck", "--strict")
}

func TestOpenSaysWhyNot(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	none, bin := t.TempDir(), t.TempDir()
	l.writeMode(bin, "git", "#!/bin/sh\necho git version 2.20.1\n", 0o755)
	for _, test := range []struct{ dir, path, want string }{
		{none, "", "open repository " + none + ": not a git repository"},
		{l.root, bin + ":/usr/bin:/bin", "git 2.20.1 found, 2.38 or newer needed"},
		{l.root, none, "no git program"},
	} {
		t.Run(test.want, func(t *testing.T) {
			if test.path != "" {
				t.Setenv("PATH", test.path)
			}
			_, err := worktree.Open(t.Context(), test.dir, worktree.Options{})
			if !errors.Is(err, worktree.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want ErrUnavailable with %q", err, test.want)
			}
		})
	}
	if _, err := worktree.Open(t.Context(), l.root, worktree.Options{Cache: l.root + "/cache"}); err == nil {
		t.Errorf("Open with a cache inside the repository = nil, want an error")
	}
	if _, err := worktree.Open(t.Context(), l.root, worktree.Options{Session: "../x"}); err == nil {
		t.Errorf("Open with session ../x = nil, want an error")
	}
}

func TestOpenWritesNothing(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	if done, err := r.Recover(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("Recover = %v, %v, want nothing", done, err)
	}
	l.close(r)
	if _, err := os.Lstat(l.root + "/.git/skein"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".git/skein: %v, want it absent", err)
	}
}

func TestSnapshotNamesWhatItLeavesOut(t *testing.T) {
	ordinary(t) // and then as root, too
	l := newLab(t)
	l.write(l.root, "big-known", "small\n")
	l.write(l.root, ".skein/tracked", "tracked\n")
	l.commit()
	big := strings.Repeat("0123456789abcde\n", 10<<16+1)
	l.write(l.root, "big-known", big)
	l.write(l.root, "big-new", big)
	l.write(l.root, "nested/file", "x\n")
	l.gitIn(l.root+"/nested", "init", "-q")
	l.write(l.root, ".skein/tracked", "changed\n")
	l.write(l.root, "secret", "closed\n")
	l.write(l.root, "shut/file", "closed\n")
	l.check(os.Chmod(l.root+"/secret", 0))
	l.check(os.Chmod(l.root+"/shut", 0))
	t.Cleanup(func() { _ = os.Chmod(l.root+"/shut", 0o700) })
	want := []worktree.Left{{Path: "big-new", Reason: worktree.LeftTooLarge}, {Path: "nested", Reason: worktree.LeftNested}}
	files := []string{"big-known"}
	if os.Getuid() == 0 { // root reads everything
		files = append(files, "secret", "shut/file")
	} else {
		want = append(want, worktree.Left{Path: "secret", Reason: worktree.LeftUnreadable}, worktree.Left{Path: "shut", Reason: worktree.LeftUnreadable})
	}
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if !slices.Equal(s.Left, want) {
		t.Errorf("Snapshot left %v, want %v", s.Left, want)
	}
	if s.Uncommitted != len(files) {
		t.Errorf("Snapshot counts %d uncommitted files, want %d", s.Uncommitted, len(files))
	}
	c := l.copy(r, s, "0.1")
	if got := slices.Sorted(maps.Keys(l.files(c.Root))); !slices.Equal(got, files) {
		t.Errorf("copy holds %v, want %v", got, files)
	}
	l.close(r)
}

func TestSnapshotRefusesUnmerged(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.git("switch", "-q", "-c", "side")
	l.write(l.root, "a", "side\n")
	l.commit()
	l.git("switch", "-q", "main")
	l.write(l.root, "a", "main\n")
	l.commit()
	_, _ = l.tryGit(l.root, "merge", "side") // conflicts
	r := l.open(worktree.Options{})
	_, err := r.Tree().Snapshot(t.Context())
	if e := (*worktree.UnmergedError)(nil); !errors.As(err, &e) || e.Path != "a" {
		t.Errorf("Snapshot = %v, want UnmergedError for a", err)
	}
	l.write(l.root, "a", "solved\n")
	l.git("add", "a")
	c := l.copy(r, l.snapshot(r.Tree()), "0.1") // the merge itself goes on
	same(t, "copy", l.files(c.Root), map[string]string{"a": `false "solved\n"`})
	l.close(r)
}

func TestSnapshotSeesFlaggedAndRacyEdits(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"assumed", "skipped", "racy"} {
		l.write(l.root, name, "1\n")
	}
	l.commit()
	l.git("update-index", "--assume-unchanged", "assumed")
	l.git("update-index", "--skip-worktree", "skipped")
	for _, name := range []string{"assumed", "skipped", "racy"} {
		l.write(l.root, name, "2\n") // as long as before, within the same second
	}
	before := l.users()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	same(t, "copy", l.files(c.Root), l.files(l.root))
	if got := l.users(); got != before {
		t.Errorf("the user's index = %s, want %s", got, before)
	}
	l.close(r)
}

func TestUnbornHead(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.git("add", "a")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if s.Head != "" || s.Branch != "main" || s.Uncommitted != 2 {
		t.Errorf("Snapshot = %+v, want no head, branch main, 2 files", s)
	}
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "b", "child\n") })
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "a\n"`, "b": `false "child\n"`})
	l.close(r)
}

func TestSubdirectory(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "sub/dir/a", "a\n")
	l.write(l.root, "other", "other\n")
	l.commit()
	r := l.openAt(l.root+"/sub/dir", worktree.Options{})
	s := l.snapshot(r.Tree())
	out := l.change(r, s, "0.0", func(dir string) {
		l.write(dir, "other", "child\n")
		l.check(os.Rename(dir+"/sub/dir/a", dir+"/sub/directory"))
		l.write(dir, "sub/dir/in", "child\n")
	})
	if got, want := out.Outside(r.Tree().Prefix), []string{"other", "sub/directory"}; !slices.Equal(got, want) {
		t.Errorf("Outside(%q) = %q, want %q", r.Tree().Prefix, got, want)
	}
	if got := out.Outside(""); len(got) > 0 {
		t.Errorf("Outside of the root = %q, want nothing", got)
	}
	ch := l.change(r, s, "0.1", func(dir string) { l.remove(dir, "sub/dir/a") })
	if got := ch.Outside(r.Tree().Prefix); len(got) > 0 {
		t.Errorf("Outside(%q) = %q, want nothing", r.Tree().Prefix, got)
	}
	c := l.copy(r, s, "0.2")
	if want := c.Root + "/sub/dir"; c.Path != want {
		t.Errorf("Copy.Path = %s, want %s", c.Path, want)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root), map[string]string{"other": `false "other\n"`})
	if _, err := os.Lstat(l.root + "/sub/dir"); err != nil {
		t.Errorf("the folder the user works in: %v, want it kept though empty", err)
	}
	l.close(r)
}

func TestLinkedWorktreeAndSymlinkedRoot(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	linked := t.TempDir() + "/linked"
	l.git("worktree", "add", "-q", "--detach", linked)
	alias := t.TempDir() + "/alias"
	l.check(os.Symlink(linked, alias))
	l.write(linked, "b", "b\n")
	before := l.git("worktree", "list")
	r := l.openAt(alias, worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), l.files(linked))
	l.write(c.Root, "b", "child\n")
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
	same(t, "linked worktree", l.files(linked), map[string]string{"a": `false "a\n"`, "b": `false "child\n"`})
	same(t, "main worktree", l.files(l.root), map[string]string{"a": `false "a\n"`})
	l.drop(c)
	l.close(r)
	if got := l.git("worktree", "list"); got != before {
		t.Errorf("git worktree list = %q, want %q", got, before)
	}
}

func TestUsersGitEnvironmentIsIgnored(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.write(l.root, "b", "b\n")
	want := l.files(l.root)
	trace := t.TempDir() + "/trace"
	for _, kv := range [][2]string{
		{"GIT_DIR", "/nowhere"},
		{"GIT_WORK_TREE", "/nowhere"},
		{"GIT_INDEX_FILE", "/nowhere/index"},
		{"GIT_OBJECT_DIRECTORY", "/nowhere"},
		{"GIT_NAMESPACE", "x"},
		{"GIT_LITERAL_PATHSPECS", "x"},
		{"GIT_CONFIG_COUNT", "1"},
		{"GIT_CONFIG_KEY_0", "core.bare"},
		{"GIT_CONFIG_VALUE_0", "true"},
		{"GIT_TRACE", trace},
		{"GIT_EXTERNAL_DIFF", "false"},
		{"GIT_AUTHOR_DATE", "nonsense"},
	} {
		t.Setenv(kv[0], kv[1])
	}
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), want)
	l.write(c.Root, "a", "child\n")
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "child\n"`, "b": `false "b\n"`})
	l.drop(c)
	l.close(r)
	if _, err := os.Lstat(trace); err == nil {
		t.Errorf("GIT_TRACE was obeyed")
	}
}

func TestLineEndsComeAndGo(t *testing.T) {
	l := newLab(t)
	l.git("config", "core.autocrlf", "true")
	l.write(l.root, ".gitattributes", "*.bin -text\n*.lf eol=lf\n.gitattributes -text\n")
	l.write(l.root, "a", "1\r\n2\r\n")
	l.write(l.root, "b.bin", "1\r\n2\n")
	l.write(l.root, "c.lf", "1\n2\n")
	l.commit()
	l.git("config", "core.safecrlf", "true")
	l.write(l.root, "mixed", "1\r\n2\n")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	for name, want := range map[string]string{"a": "1\r\n2\r\n", "b.bin": "1\r\n2\n", "c.lf": "1\n2\n"} {
		if got, err := os.ReadFile(c.Root + "/" + name); err != nil || string(got) != want {
			t.Errorf("%s in the copy = %q, %v, want %q", name, got, err, want)
		}
	}
	l.write(c.Root, "a", "1\r\nchild\r\n")
	l.write(c.Root, "new", "1\n")
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
	for name, want := range map[string]string{"a": "1\r\nchild\r\n", "new": "1\r\n", "mixed": "1\r\n2\n"} {
		if got, err := os.ReadFile(l.root + "/" + name); err != nil || string(got) != want {
			t.Errorf("%s in the tree = %q, %v, want %q", name, got, err, want)
		}
	}
	l.drop(c)
	l.close(r)
}

func TestSparseStaysSparse(t *testing.T) {
	l := newLab(t)
	l.fresh = "not all files are checked out"
	l.write(l.root, "in/a", "a\n")
	l.write(l.root, "out/b", "b\n")
	l.commit()
	l.git("sparse-checkout", "set", "--no-cone", "/in/")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if s.Uncommitted != 0 {
		t.Errorf("Snapshot counts %d uncommitted files, want 0: absent ones are not deleted", s.Uncommitted)
	}
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), map[string]string{"in/a": `false "a\n"`})
	l.write(c.Root, "in/a", "child\n")
	ch := l.collect(c)
	if len(ch.Files) != 1 {
		t.Errorf("Collect = %+v, want one file", ch.Files)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root), map[string]string{"in/a": `false "child\n"`})
	l.drop(c)
	l.close(r)
}

func TestSHA256Repository(t *testing.T) {
	l := newLab(t)
	l.remove(l.root, ".git")
	l.git("init", "-q", "--object-format=sha256")
	l.write(l.root, "a", "a\n")
	l.git("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	l.write(c.Root, "a", "child\n")
	if got := l.gitIn(c.Root, "status", "--porcelain"); got != " M a" {
		t.Errorf("git status in the copy = %q, want M a", got)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "child\n"`})
	l.drop(c)
	l.close(r)
}

func TestShallowCloneWithFilters(t *testing.T) {
	l := newLab(t)
	for _, text := range []string{"1\n", "2\n", "3\n"} {
		l.write(l.root, "a", text)
		l.commit()
	}
	shallow := t.TempDir() + "/shallow"
	l.git("clone", "-q", "--depth=1", "file://"+l.root, shallow)
	// A filter of the user's is theirs to run; a copy holds what git stores.
	l.userConfig("[filter \"up\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n")
	l.write(shallow, ".gitattributes", "*.up filter=up\n")
	l.write(shallow, "x.up", "text\n")
	r := l.openAt(shallow, worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	if got, want := l.gitIn(c.Root, "log", "--format=%s"), "snapshot\nwork"; got != want {
		t.Errorf("git log in the copy = %q, want %q", got, want)
	}
	l.write(c.Root, "x.up", "CHILD\n")
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
	if got, err := os.ReadFile(shallow + "/x.up"); err != nil || string(got) != "child\n" {
		t.Errorf("x.up = %q, %v, want the child's through the user's filter", got, err)
	}
	l.drop(c)
	l.close(r)
}

func TestStoreInTheCacheWhereGitDirectoryIsClosed(t *testing.T) {
	if ordinary(t) {
		return
	}
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.check(os.Chmod(l.root+"/.git", 0o500))
	t.Cleanup(func() { _ = os.Chmod(l.root+"/.git", 0o700) })
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "child\n") })
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "child\n"`})
	l.close(r)
}

func TestCancelEndsGitAndItsFilters(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	pid := t.TempDir() + "/pid"
	l.userConfig("[filter \"slow\"]\n\tclean = \"echo $$ >" + pid + ".new; mv " + pid + ".new " + pid + "; exec sleep 60\"\n")
	l.write(l.root, ".gitattributes", "slow filter=slow\n")
	l.write(l.root, "slow", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := l.open(worktree.Options{})
	go func() { // waited for below
		_, err := r.Tree().Snapshot(ctx)
		ended <- err
	}()
	var id int
	for deadline := time.Now().Add(10 * time.Second); id == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, _ := os.ReadFile(pid)
		id, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	start := time.Now()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Snapshot = %v, want cancelled", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("Snapshot ended %v after it was cancelled, want 2s at most", took)
	}
	if id == 0 || alive(id) {
		t.Errorf("filter %d still runs", id)
	}
	l.close(r)
}

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(id int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestLargeUntrackedFileCostsNothing(t *testing.T) {
	l := newLab(t)
	l.commitOne()
	l.write(l.root, "big", "")
	const size = 300 << 20
	l.check(os.Truncate(l.root+"/big", size))
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if want := []worktree.Left{{Path: "big", Reason: worktree.LeftTooLarge}}; !slices.Equal(s.Left, want) {
		t.Errorf("Snapshot left %v, want %v", s.Left, want)
	}
	c := l.copy(r, s, "0.1")
	if _, err := os.Lstat(c.Root + "/big"); err == nil {
		t.Error("the copy has the file")
	}
	stored := int64(0)
	for _, dir := range []string{l.root + "/.git", l.cache} {
		l.check(filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				info, err := d.Info()
				stored += info.Size()
				return err
			}
			if errors.Is(err, fs.ErrPermission) {
				return nil // of the kernel's, beside a layer
			}
			return err
		}))
	}
	if stored > 1<<20 {
		t.Errorf("git directory and cache hold %d bytes, want a few thousand", stored)
	}
	l.close(r)
}
