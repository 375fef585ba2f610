package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// In whatever state a repository is, a copy equals it, a change comes back, and of the
// user's nothing else changes.
func TestStatesOfARepository(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(l *lab) (root string)
		left []string // of the tree that a copy has not
	}{
		{"HEAD is detached", func(l *lab) string { l.git("checkout", "-q", "--detach"); return l.root }, nil},
		{"a merge is in progress", func(l *lab) string {
			l.git("merge", "-q", "--no-ff", "--no-commit", "topic")
			return l.root
		}, nil},
		{"a rebase is in progress", func(l *lab) string {
			l.git("switch", "-q", "topic")
			l.git("-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", "HEAD~1")
			return l.root
		}, nil},
		{"a cherry-pick is in progress", func(l *lab) string { l.git("cherry-pick", "-n", "topic"); return l.root }, nil},
		{"a bisection is in progress", func(l *lab) string { l.git("bisect", "start", "HEAD", "HEAD~1"); return l.root }, nil},
		{"the index is locked", func(l *lab) string { l.write(l.root, ".git/index.lock", ""); return l.root }, nil},
		{"the index is split", func(l *lab) string {
			l.git("update-index", "--split-index")
			l.write(l.root, "staged", "staged\n")
			l.git("-c", "core.splitIndex=true", "add", "staged")
			if shared, err := filepath.Glob(l.root + "/.git/sharedindex.*"); err != nil || len(shared) == 0 {
				l.Fatal("the index is not split")
			}
			return l.root
		}, nil},
		{"the index has a cache of untracked files", func(l *lab) string {
			l.git("update-index", "--untracked-cache")
			l.git("status")
			l.write(l.root, "since", "since\n")
			return l.root
		}, nil},
		{"files are excluded for this repository", func(l *lab) string {
			l.write(l.root, ".git/info/exclude", "mine\n")
			l.write(l.root, "mine", "mine\n")
			return l.root
		}, []string{"mine"}},
		{"an extension is on", func(l *lab) string {
			l.git("config", "core.repositoryFormatVersion", "1")
			l.git("config", "extensions.preciousObjects", "true")
			l.git("config", "extensions.worktreeConfig", "true")
			return l.root
		}, nil},
		{"a submodule is at another commit", func(l *lab) string {
			l.submodule()
			l.write(l.root, "sub/a", "of the submodule\n")
			l.gitIn(l.root+"/sub", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-a", "-m", "x")
			return l.root
		}, []string{"sub"}},
		{"it is a submodule", func(l *lab) string { l.submodule(); return l.root + "/sub" }, nil},
		{"a folder cannot be read", func(l *lab) string {
			l.write(l.root, "shut/x", "x\n")
			l.check(os.Chmod(l.root+"/shut", 0))
			l.Cleanup(func() { _ = os.Chmod(l.root+"/shut", 0o700) })
			return l.root
		}, map[bool][]string{true: nil, false: {"shut"}}[os.Getuid() == 0]},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			l.git("switch", "-q", "-c", "topic")
			l.write(l.root, "topic", "topic\n")
			l.commit()
			l.git("switch", "-q", "main")
			l.write(l.root, "b", "b\n")
			l.commit()
			root := test.do(l)
			l.write(root, "a", "edited\n")
			l.write(root, "untracked", "untracked\n")
			want := l.files(root, test.left...)
			index := strings.TrimSpace(l.gitIn(root, "rev-parse", "--path-format=absolute", "--git-path", "index"))
			read := func() string {
				text, err := os.ReadFile(index)
				l.check(err)
				return string(text) + l.gitIn(root, "for-each-ref", "refs/heads") + l.gitIn(root, "reflog", "--all")
			}
			before, status := read(), l.gitIn(root, "status")

			r := l.openAt(root, worktree.Options{})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			same(t, "copy", l.files(c.Root, test.left...), want)
			if now := l.gitIn(root, "status"); now != status {
				t.Errorf("git status = %s, want %s", now, status)
			}
			l.write(c.Root, "a", "child\n")
			l.write(c.Root, "new", "child\n")
			l.remove(c.Root, "untracked")
			ch := l.collect(c)
			l.drop(c)
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
			want["a"], want["new"] = `false "child\n"`, `false "child\n"`
			delete(want, "untracked")
			same(t, "tree", l.files(root, test.left...), want)
			if read() != before {
				t.Error("the user's index, branches or reflogs changed")
			}
			l.close(r)
		})
	}
}

// submodule adds a clone of the repository as a submodule.
func (l *lab) submodule() {
	l.Helper()
	l.fresh = "it has a submodule"
	l.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", l.root, "sub")
	l.git("commit", "-q", "-m", "submodule")
}

func TestStatesAsAnOrdinaryUser(t *testing.T) {
	if !ordinary(t) { // this is the ordinary user's process
		TestStatesOfARepository(t)
	}
}

// Three levels down, two writers on each: all of it arrives, each level's in order.
func TestThreeLevels(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "log", "1\n2\n3\n")
	l.commit()
	r := l.open(worktree.Options{})
	want := map[string]string{}
	var work func(tree *worktree.Tree, name string, depth int)
	work = func(tree *worktree.Tree, name string, depth int) {
		if depth == 0 {
			return
		}
		s := l.snapshot(tree)
		onto := s.Commit
		var changes []worktree.Change
		for i := 1; i <= 2; i++ {
			mine := fmt.Sprint(name, ".", i)
			c := l.copy(r, s, mine)
			work(c.Tree(), mine, depth-1)
			l.write(c.Root, "by/"+mine, mine+"\n")
			want["by/"+mine] = fmt.Sprintf("false %q", mine+"\n")
			l.write(c.Root, "same", "by a writer of level "+fmt.Sprint(depth)+"\n")
			changes = append(changes, l.collect(c))
			l.drop(c)
		}
		for _, ch := range changes {
			merged := l.merge(r, onto, ch)
			l.apply(tree, onto, merged)
			onto = merged
		}
	}
	work(r.Tree(), "0", 3)
	want["log"], want["same"] = `false "1\n2\n3\n"`, `false "by a writer of level 3\n"`
	same(t, "tree", l.files(l.root), want)
	if len(want) != 16 {
		t.Errorf("%d files, want those of 14 writers and two", len(want))
	}
	l.close(r)
}

// A file that cannot be replaced in the middle of Apply takes back those before it.
func TestApplyMeetsAFolderThatIsClosed(t *testing.T) {
	if ordinary(t) {
		return // root writes anywhere
	}
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "shut/b", "b\n")
	l.commit()
	before := l.files(l.root)
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "a", "child\n")
		l.write(dir, "shut/b", "child\n")
		l.write(dir, "shut/new", "child\n")
	})
	l.check(os.Chmod(l.root+"/shut", 0o555))
	t.Cleanup(func() { _ = os.Chmod(l.root+"/shut", 0o700) })
	merged := l.merge(r, s.Commit, ch)
	if _, err := r.Tree().Apply(t.Context(), s.Commit, merged); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Apply = %v, want that it is not permitted", err)
	}
	same(t, "tree", l.files(l.root), before)
	l.check(os.Chmod(l.root+"/shut", 0o755))
	l.apply(r.Tree(), s.Commit, merged)
	l.close(r)
}

func TestATreeOfSomebodyElse(t *testing.T) {
	need(t, os.Getuid() == 0, "only root works on other people's files")
	const nobody = 65534
	l := newLab(t)
	l.commitOne()
	l.check(filepath.WalkDir(l.root, func(at string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(at, nobody, nobody))
	}))
	if _, err := worktree.Open(t.Context(), l.root, worktree.Options{Cache: l.cache}); !errors.Is(err, worktree.ErrUnavailable) || !strings.Contains(err.Error(), "dubious ownership") {
		t.Errorf("Open = %v, want git's refusal", err)
	}
	l.userConfig("[safe]\n\tdirectory = " + l.root + "\n")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "child\n"); l.write(dir, "dir/new", "child\n") })
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	for _, name := range []string{"a", "dir", "dir/new"} {
		info, err := os.Lstat(l.root + "/" + name)
		l.check(err)
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != nobody {
			t.Errorf("%s belongs to %v, want the owner of the tree", name, info.Sys())
		}
	}
	l.close(r)
}

func TestAThousandFiles(t *testing.T) {
	l := newLab(t)
	for i := range 500 {
		l.write(l.root, fmt.Sprintf("old/%d/f", i), fmt.Sprintln(i))
	}
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	want := l.files(l.root)
	ch := l.change(r, s, "0.1", func(dir string) {
		for i := range 500 {
			old, fresh := fmt.Sprintf("old/%d/f", i), fmt.Sprintf("new/%d", i)
			if i%5 == 0 {
				l.remove(dir, old)
				delete(want, old)
			} else {
				l.write(dir, old, fmt.Sprintln("child", i))
				want[old] = fmt.Sprintf("false %q", fmt.Sprintln("child", i))
			}
			l.write(dir, fresh, fmt.Sprintln("new", i))
			want[fresh] = fmt.Sprintf("false %q", fmt.Sprintln("new", i))
		}
	})
	if a := l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch)); len(a.Files) != 1000 {
		t.Errorf("Apply changed %d files, want 1000", len(a.Files))
	}
	same(t, "tree", l.files(l.root), want)
	l.close(r)
}

// Of a file that cannot be written nothing is left: on a full disk that would be most of it.
func TestNoHalfFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{dir + "/file", dir + "/file"} { // over itself, too
		if err := worktree.WriteWhole(name, []byte("text")); err != nil {
			t.Errorf("writing a file = %v, want no error", err)
		}
	}
	if err := os.MkdirAll(dir+"/folder/full", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := worktree.WriteWhole(dir+"/folder", nil); err == nil {
		t.Error("a file was written over a folder")
	}
	names, err := filepath.Glob(dir + "/*")
	if want := []string{dir + "/file", dir + "/folder"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("left = %q, %v, want %q", names, err, want)
	}
}
