package worktree_test

import (
	"testing"

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
