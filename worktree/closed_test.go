package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/worktree"
)

// What other programs obey is not brought by a writer's change, whatever it did with it; the
// rest of the change is, and what was left out is kept.
func TestClosedPathsAreLeftOut(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"a", "sub/.tool/changed", "sub/.tool/gone", "sub/.tool/mode", "sub/.tool/same"} {
		l.write(l.root, name, name+"\n")
	}
	l.commit()
	closed := func(path string) bool {
		return slices.Contains(strings.Split(path, "/"), ".tool")
	}
	before := l.files(l.root)
	for _, test := range []struct {
		name, in string
		left     []string
	}{
		{"whole tree", "", []string{"new/.tool", "sub/.tool/changed", "sub/.tool/gone", "sub/.tool/mode", "sub/.tool/more"}},
		{"opened in one", "sub/.tool", []string{"new/.tool"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := l.openAt(filepath.Join(l.root, test.in), worktree.Options{Session: "s", Closed: closed})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			l.write(c.Root, "a", "changed\n")
			l.write(c.Root, "sub/.tool/changed", "changed\n")
			l.write(c.Root, "sub/.tool/more", "more\n")
			l.remove(c.Root, "sub/.tool/gone")
			l.check(os.Chmod(c.Root+"/sub/.tool/mode", 0o755))
			l.write(c.Root, "new/.tool", "new\n")
			ch := l.collect(c)
			var left []string
			for _, x := range ch.Left {
				if x.Reason != worktree.LeftClosed {
					t.Errorf("left %s: %s, want it closed", x.Path, x.Reason)
				}
				left = append(left, x.Path)
			}
			if !slices.Equal(left, test.left) {
				t.Errorf("left out = %q, want %q", left, test.left)
			}
			if test.in == "" {
				l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
				want := before
				want["a"] = `false "changed\n"`
				same(t, "tree", l.files(l.root), want)
			}
			folder := l.drop(c)
			if text, err := os.ReadFile(filepath.Join(folder, "new/.tool")); err != nil || string(text) != "new\n" {
				t.Errorf("kept file = %q, %v, want it", text, err)
			}
			l.close(r)
		})
	}
}

// A git directory by another name, whose hooks git would run, comes with no change.
func TestRepositoriesByOtherNamesAreLeftOut(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "half/HEAD", "ref: refs/heads/main\n")
	l.write(l.root, "half/objects/k", "")
	l.write(l.root, "notes/HEAD", "no git directory\n")
	l.commit()
	before := l.files(l.root)
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	l.gitIn(c.Root, "init", "-q", "--bare", "sub/bare")
	l.write(c.Root, "sub/bare/hooks/post-checkout", "#!/bin/sh\n")
	l.write(c.Root, "sub/bare/objects/k", "")
	l.write(c.Root, "sub/bare/refs/k", "")
	l.write(c.Root, "sub/more", "more\n")
	l.write(c.Root, "half/refs/k", "")
	l.write(c.Root, "half/config", "[core]\n\tfsmonitor = false\n")
	l.write(c.Root, "linked/HEAD", "ref: refs/heads/main\n")
	l.write(c.Root, "linked/commondir", "../sub/bare\n")
	l.write(c.Root, "notes/HEAD", "changed\n")
	l.write(c.Root, "notes/objects/of interest", "text\n")
	ch := l.collect(c)
	want := []worktree.Left{{Path: "half", Reason: worktree.LeftNested}, {Path: "linked", Reason: worktree.LeftNested}, {Path: "sub/bare", Reason: worktree.LeftNested}}
	if !slices.Equal(ch.Left, want) {
		t.Errorf("left out = %+v, want %+v", ch.Left, want)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	before["sub/more"], before["notes/HEAD"], before["notes/objects/of interest"] = `false "more\n"`, `false "changed\n"`, `false "text\n"`
	same(t, "tree", l.files(l.root), before)
	if folder := l.drop(c); folder == "" {
		t.Errorf("what was left out is kept nowhere")
	}
	l.close(r)
}
