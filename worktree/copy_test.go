package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"skein/worktree"
)

func TestSixteenCopiesAtOnce(t *testing.T) {
	l := newLab(t)
	l.dirty()
	want := l.files(l.root, "ignored.log", "build", ".skein")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	copies := make([]*worktree.Copy, 16)
	changes := make([]worktree.Change, 16)
	var g errgroup.Group
	for i := range copies {
		g.Go(func() error {
			var err error
			name := fmt.Sprint("0.", i+1)
			if copies[i], err = r.Copy(t.Context(), s, name); err != nil {
				return err
			}
			l.attach(copies[i])
			same(t, name, l.files(copies[i].Root), want)
			if err := os.WriteFile(copies[i].Root+"/by "+name, []byte(name), 0o600); err != nil {
				return err
			}
			if changes[i], err = copies[i].Collect(t.Context(), name); err != nil {
				return err
			}
			_, err = copies[i].Remove(t.Context())
			return err
		})
	}
	l.check(g.Wait())
	merged := s.Commit
	for i, ch := range changes {
		if len(ch.Files) != 1 {
			t.Errorf("change %d = %+v, want one file", i, ch.Files)
		}
		next := l.merge(r, merged, ch)
		l.apply(r.Tree(), merged, next)
		merged = next
		want["by "+copies[i].Name] = fmt.Sprintf("false %q", copies[i].Name)
	}
	same(t, "tree", l.files(l.root, "ignored.log", "build", ".skein"), want)
	l.close(r)
	if left, _ := filepath.Glob(l.cache + "/copies/*"); len(left) > 0 {
		t.Errorf("after Close: %v, want no copies", left)
	}
}

func TestCopyAfterOneThatWasCancelled(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	var end context.CancelFunc
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at == "before git config" && end != nil {
			end()
		}
		return nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end = cancel
	if _, err := r.Tree().Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Snapshot = %v, want cancelled", err)
	}
	end = nil
	s := l.snapshot(r.Tree())
	if _, err := r.Copy(ctx, s, "0.1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Copy = %v, want cancelled", err)
	}
	l.drop(l.copy(r, s, "0.1"))
	l.close(r)
}

func TestWritersGitWorks(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	first := l.commit()
	l.git("branch", "topic")
	l.git("tag", "v1")
	l.write(l.root, "b", "uncommitted\n")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	before := l.users()
	in := func(args ...string) string { l.Helper(); return l.gitIn(c.Path, args...) }
	if got, want := in("rev-parse", "HEAD", "HEAD^", "main", "topic", "v1"), strings.Join([]string{s.Commit, first, first, first, first}, "\n"); got != want {
		t.Errorf("rev-parse = %q, want %q", got, want)
	}
	l.write(c.Root, "a", "stashed\n")
	in("stash")
	in("stash", "pop")
	in("switch", "-q", "-c", "mine")
	l.write(c.Root, "new", "half committed\n")
	in("add", "new")
	in("commit", "-q", "-m", "mine")
	if got, want := in("log", "-1", "--format=%an <%ae> %s"), "Ada <ada@example.org> mine"; got != want {
		t.Errorf("git log = %q, want %q", got, want)
	}
	if got, want := in("diff", "--stat", "--summary", "v1..mine", "--", "new"), "half"; !strings.Contains(got, "1 insertion") {
		t.Errorf("git diff = %q, want the insertion of %s", got, want)
	}
	in("gc", "-q", "--prune=now")
	in("fsck")
	in("switch", "-q", "main")
	in("switch", "-q", "mine")
	for _, args := range [][]string{{"push"}, {"fetch", "origin"}, {"push", "origin", "mine"}} {
		if out, err := l.tryGit(c.Path, args...); err == nil {
			t.Errorf("git %v = %q, want it to fail", args, out)
		}
	}
	ch := l.collect(c)
	if ch.Base != s.Commit || len(ch.Files) != 2 {
		t.Errorf("Collect = %+v, want a modified and new added against the snapshot", ch)
	}
	if got := l.users(); got != before {
		t.Errorf("the user's repository = %s, want %s", got, before)
	}
	l.drop(c)
	l.close(r)
}

// In a box the copy stands at the path of the user's checkout; what it borrows is then
// below its own .git.
func TestWritersGitWorksAtTheUsersPath(t *testing.T) {
	err := exec.CommandContext(t.Context(), "unshare", "-Urm", "true").Run()
	need(t, err == nil, "no user and mount namespaces")
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.write(l.root, "a", "uncommitted\n")
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	if c.Layers() != nil {
		t.Skip("a folder of its own is shown only by a box")
	}
	hold := t.TempDir()
	script := "set -e\n"
	for i := range c.Objects {
		script += fmt.Sprintf("mkdir %s/%d\nmount --bind %s %s/%d\n", hold, i, c.Objects[i], hold, i)
	}
	script += fmt.Sprintf("mount --bind %s %s\n", c.Root, l.root)
	for i := range c.Objects {
		script += fmt.Sprintf("mount --bind -o ro %s/%d %s\n", hold, i, c.Objects[i])
	}
	script += fmt.Sprintf("cd %s\ntest -z \"$(git status --porcelain)\"\necho child >a\ngit commit -qam mine\ngit log --format=%%s\n", l.root)
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "sh", "-c", script)
	out, err := cmd.CombinedOutput()
	if want := "mine\nsnapshot\nwork\n"; err != nil || string(out) != want {
		t.Errorf("git in the view = %q, %v, want %q", out, err, want)
	}
	if got := l.collect(c); len(got.Files) != 1 {
		t.Errorf("Collect = %+v, want a", got.Files)
	}
	l.drop(c)
	l.close(r)
}

func TestHostileWriter(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(l *lab, c *worktree.Copy, spy string)
	}{
		{"filter, hooks and monitor", func(l *lab, c *worktree.Copy, spy string) {
			for _, kv := range [][2]string{
				{"filter.x.clean", spy},
				{"filter.x.smudge", spy},
				{"filter.x.process", spy},
				{"filter.x.required", "true"},
				{"core.fsmonitor", spy},
				{"diff.x.command", spy},
				{"diff.x.textconv", spy},
				{"merge.x.driver", spy},
				{"core.hooksPath", c.GitDir},
			} {
				l.gitIn(c.Root, "config", kv[0], kv[1])
			}
			l.write(c.Root, ".gitattributes", "* filter=x diff=x merge=x\n")
			for _, hook := range []string{"pre-commit", "post-index-change", "post-checkout", "reference-transaction"} {
				l.writeMode(c.GitDir, hook, "#!/bin/sh\n"+spy, 0o755)
			}
		}},
		{"encoding that cannot be", func(l *lab, c *worktree.Copy, _ string) {
			l.write(c.Root, ".gitattributes", "bad working-tree-encoding=UTF-16\n")
			l.write(c.Root, "bad", "x")
		}},
		{"no git directory", func(l *lab, c *worktree.Copy, _ string) { l.remove(c.Root, ".git") }},
		{"git directory is a file", func(l *lab, c *worktree.Copy, _ string) {
			l.remove(c.Root, ".git")
			l.write(c.Root, ".git", "gitdir: /nowhere\n")
		}},
		{"git directory is the user's", func(l *lab, c *worktree.Copy, _ string) {
			l.remove(c.Root, ".git")
			l.link(c.Root, ".git", l.root+"/.git")
		}},
		{"nested repository with a monitor", func(l *lab, c *worktree.Copy, spy string) {
			l.write(c.Root, "nested/file", "x\n")
			l.gitIn(c.Root+"/nested", "init", "-q")
			l.gitIn(c.Root+"/nested", "config", "core.fsmonitor", spy)
		}},
		{"folder without permissions", func(l *lab, c *worktree.Copy, _ string) {
			l.write(c.Root, "shut/file", "x\n")
			l.check(os.Chmod(c.Root+"/shut", 0))
		}},
		{"files of the harness", func(l *lab, c *worktree.Copy, _ string) {
			l.write(c.Root, ".skein/config.yaml", "hooks: everything\n")
		}},
		{"secrets, big files, names of git's", func(l *lab, c *worktree.Copy, _ string) {
			l.write(c.Root, "conf/.env", "KEY=1\n")
			l.write(c.Root, "id_rsa", "key\n")
			l.write(c.Root, "big", strings.Repeat("x", 10<<20+1))
			l.write(c.Root, "git~1", "x\n")
		}},
		{"link to outside", func(l *lab, c *worktree.Copy, _ string) {
			l.remove(c.Root, "dir")
			l.link(c.Root, "dir", l.root)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.write(l.root, "dir/b", "b\n")
			l.commit()
			traces := t.TempDir()
			spy := "touch " + traces + "/ran"
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			before := l.users()
			l.write(c.Root, "a", "child\n")
			test.do(l, c, spy)
			ch := l.collect(c)
			if _, err := os.Lstat(traces + "/ran"); err == nil {
				t.Errorf("something of the writer's ran")
			}
			if !slices.ContainsFunc(ch.Files, func(f worktree.FileStat) bool { return f.Path == "a" && f.Status == "M" }) {
				t.Errorf("Collect = %+v, want a modified", ch.Files)
			}
			for _, f := range ch.Files {
				taken := []string{"a", ".gitattributes", "dir", "dir/b", "shut/file"}
				if !slices.Contains(taken, f.Path) {
					t.Errorf("Collect took %s", f.Path)
				}
			}
			left := map[string][]worktree.Left{
				"encoding that cannot be":          {{Path: "bad", Reason: "BOM is required in 'bad' if encoded as UTF-16"}},
				"nested repository with a monitor": {{Path: "nested", Reason: worktree.LeftNested}},
				"files of the harness":             {{Path: ".skein", Reason: worktree.LeftOurs}},
				"secrets, big files, names of git's": {
					{Path: "big", Reason: worktree.LeftTooLarge},
					{Path: "conf/.env", Reason: worktree.LeftSecret},
					{Path: "git~1", Reason: worktree.LeftName},
					{Path: "id_rsa", Reason: worktree.LeftSecret},
				},
			}[test.name]
			if !slices.Equal(ch.Left, left) {
				t.Errorf("Collect left %q, want %q", ch.Left, left)
			}
			if got := l.users(); got != before {
				t.Errorf("the user's repository = %s, want %s", got, before)
			}
			l.drop(c)
			if _, err := os.Lstat(folder(c)); err == nil {
				t.Errorf("Remove left %s", c.Root)
			}
			l.close(r)
		})
	}
}

func TestGrandchildrenArriveInOrder(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.write(l.root, "b", "uncommitted\n")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	child := l.copy(r, s, "0.1")
	l.write(child.Root, "a", "child\n")
	below := l.snapshot(child.Tree())
	if below.Uncommitted != 1 || below.Branch != "main" {
		t.Errorf("Snapshot of the copy = %+v, want 1 uncommitted file on main", below)
	}
	grand := l.change(r, below, "0.1.1", func(dir string) {
		l.write(dir, "a", "child\ngrandchild\n")
		l.remove(dir, "b")
	})
	l.apply(child.Tree(), below.Commit, l.merge(r, below.Commit, grand))
	ch := l.collect(child)
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "child\ngrandchild\n"`})
	l.drop(child)
	l.close(r)
}

func TestCloseKeepsWork(t *testing.T) {
	l := newLab(t)
	odd := filepath.Dir(l.root) + "/it's; odd $(name)"
	l.check(os.Rename(l.root, odd))
	l.root = odd
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "s", Run: "7"})
	s := l.snapshot(r.Tree())
	l.copy(r, s, "0.1")
	l.write(l.copy(r, s, "0.2").Root, "a", "work\n")
	whole := l.copy(r, s, "0.3")
	l.check(whole.Note("rename it"))
	l.write(whole.Root, "a", "work\n")
	l.write(whole.Root, "dir/key.pem", "secret\n")
	merged := l.copy(r, s, "0.4")
	l.write(merged.Root, "a", "merged\n")
	l.collect(merged)
	l.drop(merged)
	kept := l.closeKeeping(r)
	if len(kept) != 2 || kept[0].Name != "0.2" || kept[0].Ref != "refs/skein/s/7/kept/0.2" || kept[0].Folder != "" ||
		kept[1].Name != "0.3" || kept[1].Ref != "refs/skein/s/7/kept/0.3" || !slices.Equal(kept[1].Paths, []string{"dir/key.pem"}) {
		t.Fatalf("Close = %+v, want 0.2 and 0.3 kept", kept)
	}
	if out := l.git("--git-dir=.git/skein", "log", "-p", "-1", kept[0].Ref); !strings.Contains(out, "+work") {
		t.Errorf("%s = %q, want the change", kept[0].Ref, out)
	}
	for i, want := range []string{"kept from an unfinished run", "rename it"} {
		if out := l.git("--git-dir=.git/skein", "log", "--format=%B", "-1", kept[i].Ref); strings.TrimSpace(out) != want {
			t.Errorf("the message of %s = %q, want %q", kept[i].Name, out, want)
		}
	}
	if text, err := os.ReadFile(kept[1].Folder + "/dir/key.pem"); err != nil || string(text) != "secret\n" {
		t.Errorf("what was left out = %q, %v, want it in %s", text, err, kept[1].Folder)
	}
	refs := l.git("--git-dir=.git/skein", "for-each-ref", "--format=%(refname)", "refs/skein/s/7/kept")
	if want := "refs/skein/s/7/kept/0.2\nrefs/skein/s/7/kept/0.3"; refs != want {
		t.Errorf("kept = %q, want %q", refs, want)
	}
	if got := l.git("for-each-ref", "--format=%(refname)", "refs/skein"); got != "refs/skein/s/7/head" {
		t.Errorf("the user's refs/skein = %q, want the head the kept work needs", got)
	}
	if left, _ := filepath.Glob(l.cache + "/copies/*"); len(left) > 0 {
		t.Errorf("copies left = %v, want none", left)
	}
	next := l.open(worktree.Options{})
	if done, err := next.Recover(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("Recover = %+v, %v, want nothing new to tell", done, err)
	}
}

func TestRemoveKeepsWhatWasLeftOut(t *testing.T) {
	ordinary(t)
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	edit := func(name string) *worktree.Copy {
		c := l.copy(r, s, name)
		l.write(c.Root, "a", "work\n")
		l.write(c.Root, "conf/.env", "KEY=1\n")
		l.write(c.Root, "taken", "taken\n")
		l.write(c.Root, "deep/nested/file", "nested\n")
		l.gitIn(c.Root+"/deep/nested", "init", "-q", "--template=")
		l.sparse(c.Root, "deep/.gitignore", 2<<20)
		l.write(c.Root, "big", strings.Repeat("x", 10<<20+1))
		l.write(c.Root, "shut/file", "shut\n")
		l.check(os.Chmod(c.Root+"/conf", 0o500))
		l.check(os.Chmod(c.Root+"/shut", 0))
		l.collect(c)
		return c
	}
	c := edit("0.1")
	left := l.drop(c)
	if want := l.cache + "/left/"; !strings.HasPrefix(left, want) || !strings.HasSuffix(left, "@s@1/0.1") {
		t.Errorf("Remove = %s, want a folder of the copy's below %s", left, want)
	}
	want := []string{"big", "conf/.env", "deep/.gitignore", "deep/nested/.git/HEAD", "deep/nested/file"}
	var got []string
	for name := range l.files(left) {
		if !strings.Contains(name, "/.git/") || strings.HasSuffix(name, "/HEAD") {
			got = append(got, name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("left folder holds %q, want %q", got, want)
	}
	if _, err := os.Lstat(folder(c)); err == nil {
		t.Errorf("Remove left %s", c.Root)
	}
	if again := l.drop(edit("0.1")); again != left+"-2" {
		t.Errorf("Remove of a second copy of that name = %s, want %s-2", again, left)
	}
	l.close(r)
}

// A copy whose change was applied holds nothing but what was left out of that.
func TestMergedCopyIsNotKeptAgain(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	dead := l.open(worktree.Options{Session: "dead"})
	s := l.snapshot(dead.Tree())
	onto := s.Commit
	for _, name := range []string{"0.1", "0.2"} {
		c := l.copy(dead, s, name)
		l.write(c.Root, name, "work\n")
		if name == "0.2" {
			l.write(c.Root, ".env", "KEY=1\n")
		}
		merged := l.merge(dead, onto, l.collect(c))
		_, err := c.ApplyTo(t.Context(), dead.Tree(), onto, merged)
		l.check(err)
		onto = merged
	}
	kept := l.closeKeeping(dead) // as if it had been killed before it removed them
	if len(kept) != 1 || kept[0].Name != "0.2" || kept[0].Ref != "" || !slices.Equal(kept[0].Paths, []string{".env"}) {
		t.Errorf("Close = %+v, want only what was left out of 0.2", kept)
	}
	if text, err := os.ReadFile(kept[0].Folder + "/.env"); err != nil || string(text) != "KEY=1\n" {
		t.Errorf("what was left out = %q, %v, want it", text, err)
	}
}

// A copy whose removal was begun holds no unfinished work, whatever is left of it.
func TestHalfRemovedCopyIsNotKept(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	dead := l.open(worktree.Options{Session: "dead"})
	c := l.copy(dead, l.snapshot(dead.Tree()), "0.1")
	l.write(c.Root, "a", "merged\n")
	l.collect(c)
	hold := t.TempDir()
	tree := filepath.Join(folder(c), stored())
	l.check(os.Rename(tree, hold+"/tree"))
	l.drop(c) // as if it had been killed before the files were deleted
	folder := folder(c)
	l.check(os.Mkdir(folder, 0o700))
	l.check(os.Rename(hold+"/tree", tree))
	l.remove(tree, "b")
	if kept := l.closeKeeping(dead); len(kept) > 0 {
		t.Errorf("Close = %+v, want nothing kept", kept)
	}
	next := l.open(worktree.Options{Session: "next"})
	if done, err := next.Recover(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("Recover = %+v, %v, want nothing to tell", done, err)
	}
	if _, err := os.Lstat(folder); err == nil {
		t.Errorf("Recover left %s", folder)
	}
}

// Nothing of a copy that was disowned is kept: not by its run, and where that was killed not by
// the next, which finds no mark.
func TestDisownedCopiesAreNotKept(t *testing.T) {
	ordinary(t)
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	disowned, owned := l.copy(r, s, "0.1"), l.copy(r, s, "0.2")
	for _, c := range []*worktree.Copy{disowned, owned} {
		l.write(c.Root, "a", "changed\n")
	}
	l.check(disowned.Disown())
	for c, marked := range map[*worktree.Copy]bool{disowned: false, owned: true} {
		if _, err := os.Lstat(filepath.Join(folder(c), "base")); (err == nil) != marked {
			t.Errorf("copy %s: the mark is there: %v, want it there: %v", c.Name, err, marked)
		}
	}
	if kept := l.closeKeeping(r); len(kept) != 1 || kept[0].Name != "0.2" {
		t.Errorf("Close = %+v, want 0.2 kept alone", kept)
	}
	if left, _ := filepath.Glob(l.cache + "/copies/*"); len(left) > 0 {
		t.Errorf("copies left = %v, want none", left)
	}
}
