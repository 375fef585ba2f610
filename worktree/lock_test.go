package worktree_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"skein/worktree"
)

// hold locks the repository as another process would.
func (l *lab) hold() (release func()) {
	l.Helper()
	f, err := os.OpenFile(l.root+"/.git/skein/lock", os.O_RDWR|os.O_CREATE, 0o600)
	l.check(err)
	l.check(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	return func() { _ = f.Close() }
}

func TestRecoverWaitsForNobody(t *testing.T) {
	anyWay(t)
	l, root, before, half := halfApplied(t, mainTree)
	release := l.hold()
	r := l.open(worktree.Options{Session: "next"})
	done, err := r.Recover(soon(t))
	if err != nil || len(done) > 0 {
		t.Errorf("Recover of a repository that is held = %+v, %v, want nothing done", done, err)
	}
	same(t, "tree", l.files(root), half)
	release()
	// The run that goes on takes no snapshot of half a change.
	s := l.snapshot(r.Tree())
	same(t, "tree", l.files(root), before)
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), before)
	l.close(r)
}

func TestWritersWaitForALimitedTime(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	r.SetLockTime(30 * time.Millisecond)
	s := l.snapshot(r.Tree())
	m := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "b\n") }))
	late := l.open(worktree.Options{})
	late.SetLockTime(30 * time.Millisecond)
	release := l.hold()
	_, applied := r.Tree().Apply(soon(t), s.Commit, m)
	_, begun := late.Tree().Snapshot(soon(t))
	for what, err := range map[string]error{"Apply": applied, "Snapshot": begun} {
		held := (*worktree.LockedError)(nil)
		if !errors.As(err, &held) || !strings.Contains(err.Error(), "/skein/lock") || !strings.Contains(held.Hint(), "fuser ") {
			t.Errorf("%s of a repository that is held = %v, want a LockedError", what, err)
		}
	}
	release()
	l.apply(r.Tree(), s.Commit, m)
	l.close(r)
}

// What a copy takes keeps no other run from writing.
func TestReclaimingHoldsNobodyUp(t *testing.T) {
	anyWay(t)
	l, root, before, _ := halfApplied(t, mainTree)
	other := l.open(worktree.Options{Session: "other"})
	other.SetLockTime(time.Second)
	asked := false
	next := l.open(worktree.Options{Session: "next", Fault: func(point string) error {
		if point == "before git write-tree" && !asked { // of the copy
			asked = true
			l.snapshot(other.Tree())
		}
		return nil
	}})
	done, err := next.Recover(soon(t))
	if err != nil || len(done) != 2 || !asked {
		t.Errorf("Recover = %+v, %v, want a change rolled back and a copy kept", done, err)
	}
	same(t, "tree", l.files(root), before)
	l.close(other)
}
