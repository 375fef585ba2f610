package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skein/worktree"
)

// What a writer puts where a submodule belongs is named and kept, and a submodule that is
// replaced or removed is never half of a change.
func TestWritersAndSubmodules(t *testing.T) {
	work := func(l *lab, dir string) { l.write(dir, "a", "child\n") }
	for _, test := range []struct {
		name string
		edit func(l *lab, dir string)
		left []worktree.Left
		kind string // of the conflict; "" is merged
	}{
		{"untouched", func(*lab, string) {}, nil, ""},
		{"files in its folder", func(l *lab, dir string) {
			l.write(dir, "sub/f", "F\n")
			l.write(dir, "sub/new", "N\n")
		}, []worktree.Left{{Path: "sub", Reason: worktree.LeftSubmodule}}, ""},
		{"a file in its place", func(l *lab, dir string) {
			l.remove(dir, "sub", ".gitmodules")
			l.write(dir, "sub", "file\n")
		}, nil, worktree.KindSubmodule},
		{"a link in its place", func(l *lab, dir string) {
			l.remove(dir, "sub", ".gitmodules")
			l.link(dir, "sub", "a")
		}, nil, worktree.KindSubmodule},
		{"nothing in its place", func(l *lab, dir string) { l.remove(dir, "sub", ".gitmodules") }, nil, worktree.KindSubmodule},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			l.submodule()
			before := l.files(l.root)
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			work(l, c.Root)
			test.edit(l, c.Root)
			ch := l.collect(c)
			if !slices.Equal(ch.Left, test.left) {
				t.Errorf("Collect left %v, want %v", ch.Left, test.left)
			}
			folder := l.drop(c)
			if len(test.left) > 0 {
				same(t, "left", l.files(folder), map[string]string{"sub/a": `false "a\n"`, "sub/f": `false "F\n"`, "sub/new": `false "N\n"`})
			}
			_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
			if conflict := (*worktree.ConflictError)(nil); test.kind == "" {
				l.check(err)
				before["a"] = `false "child\n"`
			} else if !errors.As(err, &conflict) || conflict.Conflicts[0].Kind != test.kind {
				t.Errorf("Apply = %v, want a conflict of kind %s", err, test.kind)
			}
			same(t, "tree", l.files(l.root), before)
			l.close(r)
		})
	}
}

// git add -f says that a file is to be taken.
func TestForcedFilesAreTaken(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".gitignore", "*.ign\nbuild/\n")
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Closed: func(path string) bool { return path == "closed.ign" }})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	for _, name := range []string{"closed.ign", "added.ign", "committed.ign", "build/out", "not.ign", "gone.ign", "key.pem", "nested/x"} {
		l.write(c.Root, name, name+"\n")
	}
	l.link(c.Root, "link.ign", "a")
	l.write(c.Root, ".git/info/exclude", "key.pem\n")
	l.gitIn(c.Root, "add", "-f", "committed.ign", "build/out", "link.ign", "gone.ign", "key.pem", "closed.ign")
	l.gitIn(c.Root, "commit", "-q", "-m", "forced")
	l.gitIn(c.Root, "add", "-f", "added.ign")
	l.remove(c.Root, "gone.ign")
	ch := l.collect(c)
	var names []string
	for _, f := range ch.Files {
		names = append(names, f.Path)
	}
	if want := []string{"added.ign", "build/out", "committed.ign", "link.ign", "nested/x"}; !slices.Equal(names, want) {
		t.Errorf("Collect = %q, want %q", names, want)
	}
	if want := []worktree.Left{{Path: "closed.ign", Reason: worktree.LeftClosed}, {Path: "key.pem", Reason: worktree.LeftSecret}}; !slices.Equal(ch.Left, want) {
		t.Errorf("Collect left %v, want %v", ch.Left, want)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	if text, err := os.ReadFile(l.root + "/build/out"); err != nil || string(text) != "build/out\n" {
		t.Errorf("build/out = %q, %v, want the child's", text, err)
	}
	l.drop(c)
	// An index that is none, or leads elsewhere, is no reason to fail.
	for name, spoil := range map[string]func(dir string){
		"0.2": func(dir string) { l.write(dir, ".git/index", "garbage") },
		"0.3": func(dir string) { l.link(dir, ".git/index", "/dev/zero") },
		"0.4": func(dir string) { l.fifo(dir, ".git/index") },
		"0.5": func(dir string) { l.sparse(dir, ".git/index", 1<<40) },
	} {
		ch := l.change(r, s, name, func(dir string) { l.write(dir, "a", "child\n"); l.write(dir, "x.ign", "x"); spoil(dir) })
		if len(ch.Files) != 1 || ch.Files[0].Path != "a" || len(ch.Left) > 0 {
			t.Errorf("Collect(%s) = %+v, want a alone", name, ch)
		}
	}
	l.close(r)
}

// What git passes over without a word is named, and kept; what is ignored is not.
func TestStrangeFilesAreNamed(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".gitignore", "build/\n")
	l.write(l.root, "d/a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "d/a", "child\n")
	l.fifo(c.Root, "d/fifo")
	l.fifo(c.Root, ":!fifo")
	l.fifo(c.Root, "build/fifo")
	l.write(c.Root, "d/.skein/x", "x\n")
	l.check(os.MkdirAll(c.Root+"/e/.skein/empty", 0o755))
	l.write(c.Root, "sub/.git", "gitdir: elsewhere\n")
	l.write(c.Root, "s/.git/config", "[core]\n")
	l.write(c.Root, "build/s/.git/config", "[core]\n")
	ch := l.collect(c)
	want := []worktree.Left{
		{Path: ":!fifo", Reason: worktree.LeftSpecial},
		{Path: "d/.skein", Reason: worktree.LeftOurs},
		{Path: "d/fifo", Reason: worktree.LeftSpecial},
		{Path: "s/.git", Reason: worktree.LeftName},
		{Path: "sub/.git", Reason: worktree.LeftName},
	}
	if !slices.Equal(ch.Left, want) || len(ch.Files) != 1 {
		t.Errorf("Collect = %v, left %v, want d/a, left %v", ch.Files, ch.Left, want)
	}
	if got := l.files(l.drop(c)); len(got) != 5 {
		t.Errorf("kept %v, want all that was left out", got)
	}
	l.close(r)
}

// A writer's files are ours to open.
func TestClosedFilesOfAWriterAreTaken(t *testing.T) {
	if ordinary(t) {
		return // root reads everything
	}
	l := newLab(t)
	l.write(l.root, "known", "known\n")
	l.write(l.root, "dir/known", "known\n")
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.writeMode(c.Root, "known", "child\n", 0)
	l.writeMode(c.Root, "new", "new\n", 0)
	l.write(c.Root, "dir/new", "new\n")
	l.write(c.Root, "shut/deep/new", "new\n")
	for _, folder := range []string{"dir", "shut/deep", "shut"} {
		l.check(os.Chmod(c.Root+"/"+folder, 0))
	}
	ch := l.collect(c)
	var names []string
	for _, f := range ch.Files {
		names = append(names, f.Path)
	}
	if want := []string{"dir/new", "known", "new", "shut/deep/new"}; !slices.Equal(names, want) || len(ch.Left) > 0 {
		t.Errorf("Collect = %q, left %v, want %q and nothing left", names, ch.Left, want)
	}
	l.drop(c)
	l.close(r)
}

// What does not come into a copy as it is in the tree is named.
func TestManifestNamesWhatDiffers(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.git("config", "core.autocrlf", "true")
	l.git("config", "core.ignoreCase", "true")
	l.write(l.root, "mixed", "1\r\n2\n")
	l.write(l.root, "same", "1\r\n2\r\n")
	var want []worktree.Left
	if _, err := os.Lstat(filepath.Join(l.root, ".GIT")); err != nil {
		l.write(l.root, "A", "A\n")
		want = append(want, worktree.Left{Path: "A", Reason: worktree.LeftCase})
	}
	want = append(want, worktree.Left{Path: "mixed", Reason: worktree.LeftLineEnds})
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if !slices.Equal(s.Left, want) {
		t.Errorf("Snapshot left %v, want %v", s.Left, want)
	}
	if len(want) > 1 {
		ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "A", "child\n") })
		if !slices.Equal(ch.Left, want[:1]) {
			t.Errorf("Collect left %v, want %v", ch.Left, want[:1])
		}
	}
	l.close(r)
}

func TestIgnoredFolders(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".gitignore", "build/\n*.mine\n")
	l.write(l.root, ".git/info/exclude", "[x]\n")
	l.write(l.root, "src/a", "a\n")
	l.commit()
	for folder, want := range map[string]bool{
		"": false, "src": false, "new": false, "build": true, "build/deep": true, "src/odd.mine": true, "x": true, "[x]": false, ":x": false,
	} {
		l.check(os.MkdirAll(filepath.Join(l.root, folder), 0o755))
		r := l.openAt(filepath.Join(l.root, folder), worktree.Options{})
		if got, err := r.Ignored(t.Context()); err != nil || got != want {
			t.Errorf("Ignored of %q = %v, %v, want %v", folder, got, err, want)
		}
	}
}
