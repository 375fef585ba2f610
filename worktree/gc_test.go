package worktree_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

func TestUsersGCTakesNothing(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.write(l.root, "a", "only in the index\n")
	l.write(l.root, "b", "only in the index too\n")
	l.git("add", "a", "b")
	want := l.files(l.root)
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	// Everything the snapshot was made of leaves the user's reach.
	l.git("reset", "-q", "--hard")
	l.git("commit", "-q", "--amend", "--allow-empty", "-m", "other")
	gc := func() {
		l.git("reflog", "expire", "--expire=now", "--all")
		l.git("gc", "-q", "--prune=now")
		l.git("worktree", "prune")
	}
	gc()
	c := l.copy(r, s, "0.1")
	same(t, "copy", l.files(c.Root), want)
	if got, want := l.gitIn(c.Root, "log", "--format=%s"), "snapshot\nwork"; got != want {
		t.Errorf("git log in the copy = %q, want %q", got, want)
	}
	l.write(c.Root, "a", "child\n")
	ch := l.collect(c)
	l.drop(c)
	ref, err := r.Keep(t.Context(), ch, "0.1", "test")
	l.check(err)
	l.close(r)
	gc()
	got, err := l.tryGit(l.root, "--git-dir=.git/skein", "show", ref+":a")
	if err != nil || got != "child" {
		t.Errorf("kept change = %q, %v, want the child's file", got, err)
	}
	l.git("fsck", "--strict")
}

// What a change has in common with a branch of the user's is not written again; it must
// be there when that branch is gone, for kept changes, for merges, for nested snapshots.
func TestUsersGCTakesNothingOfAChange(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.git("switch", "-q", "-c", "topic")
	for _, name := range []string{"one", "two", "three", "four"} {
		l.write(l.root, name, strings.Repeat(name+" of topic\n", 100))
	}
	l.commit()
	l.git("gc", "-q")
	l.git("switch", "-q", "main")
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	from := func(name string) func(string) {
		return func(dir string) { l.gitIn(dir, "checkout", "-q", "topic", "--", name) }
	}
	one := l.change(r, s, "0.1", from("one"))
	two := l.change(r, s, "0.2", from("two"))
	nest := l.copy(r, s, "0.3")
	from("three")(nest.Root)
	nested := l.snapshot(nest.Tree())
	four := l.change(r, nested, "0.3.1", from("four"))
	m1 := l.merge(r, s.Commit, one)
	m2 := l.merge(r, m1, two)
	ref, err := r.Keep(t.Context(), four, "0.3.1", "test")
	l.check(err)
	l.drop(nest)
	prune := func() {
		l.git("reflog", "expire", "--expire=now", "--all")
		l.git("gc", "-q", "--prune=now")
	}
	l.git("branch", "-q", "-D", "topic")
	prune()
	l.apply(r.Tree(), s.Commit, m1)
	l.apply(r.Tree(), m1, m2)
	l.close(r)
	prune()
	for _, name := range []string{"three", "four"} {
		if out, err := l.tryGit(l.root, "--git-dir=.git/skein", "show", ref+":"+name); err != nil {
			t.Errorf("kept %s is gone: %v %s", name, err, out)
		}
	}
	for _, name := range []string{"one", "two"} {
		if text, err := os.ReadFile(l.root + "/" + name); err != nil || !strings.HasPrefix(string(text), name+" of topic") {
			t.Errorf("%s = %q, %v, want what was on topic", name, text, err)
		}
	}
}

// What a merge makes may be in the user's object store only, too.
func TestUsersGCTakesNothingOfAMerge(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "1\n2\n3\n4\n5\n6\n")
	l.commit()
	l.git("switch", "-q", "-c", "topic")
	l.write(l.root, "a", "one\n2\n3\n4\n5\ntwo\n")
	l.commit()
	l.git("gc", "-q")
	l.git("switch", "-q", "main")
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	one := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "one\n2\n3\n4\n5\n6\n") })
	two := l.change(r, s, "0.2", func(dir string) { l.write(dir, "a", "1\n2\n3\n4\n5\ntwo\n") })
	m := l.merge(r, l.merge(r, s.Commit, one), two)
	l.git("branch", "-q", "-D", "topic")
	l.git("reflog", "expire", "--expire=now", "--all")
	l.git("gc", "-q", "--prune=now")
	l.apply(r.Tree(), s.Commit, m)
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "one\n2\n3\n4\n5\ntwo\n"`})
	l.close(r)
}

// Nobody has to think of it: the end of a run removes what is old, once a day.
func TestGCDaily(t *testing.T) {
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	l.keep(r, s, "0.1", "why", func(dir string) { l.write(dir, "kept", "1\n") })
	l.close(r)
	stamp := l.root + "/.git/skein/collected"
	for _, step := range []struct {
		why  string
		last time.Duration // since it was done; 0 for never
		gone int
	}{
		{"the first time counts from now on", 0, 0},
		{"not again on the same day", time.Hour, 0},
		{"a day later", 25 * time.Hour, 1},
	} {
		if step.last > 0 {
			l.check(os.Chtimes(stamp, time.Time{}, time.Now().Add(-step.last)))
		}
		got, err := r.GCDaily(t.Context(), -time.Minute)
		if err != nil || len(got.Dropped) != step.gone {
			t.Errorf("%s: GCDaily dropped %d, %v, want %d", step.why, len(got.Dropped), err, step.gone)
		}
	}
}

// Layers that a repository has not used for long go, too; those in use stay.
func TestGCRemovesOldLayers(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	l.copy(r, l.snapshot(r.Tree()), "0.1")
	if got := l.layersOf(); len(got) != 1 {
		t.Fatalf("bases = %q, want one", got)
	}
	for _, step := range []struct {
		why   string
		older time.Duration
		left  int
	}{
		{"it is used", -time.Hour, 1},
		{"it was used lately", time.Hour, 1},
		{"it is old", -time.Hour, 0},
	} {
		if step.why != "it is used" {
			l.close(r)
		}
		if _, err := r.GC(t.Context(), step.older); err != nil || len(l.layersOf()) != step.left {
			t.Errorf("%s: after GC = %v, bases = %q, want %d", step.why, err, l.layersOf(), step.left)
		}
	}
}

// Layers of repositories that are gone go too, with their folders, and so do those of
// processes that died while they tried what the cache can hold.
func TestGCRemovesLayersOfOthers(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	clone := l.TempDir() + "/clone"
	l.git("clone", "-q", l.root, clone)
	theirs := l.openAt(clone, worktree.Options{Session: "s"})
	l.copy(theirs, l.snapshot(theirs.Tree()), "0.1")
	l.write(l.cache, "bases/probe-1/x", "x")
	l.write(l.cache, "bases/probe-2/x", "x")
	old := time.Now().Add(-2 * time.Hour)
	l.check(os.Chtimes(l.cache+"/bases/probe-1", old, old))
	mine := l.open(worktree.Options{Session: "s"})
	l.copy(mine, l.snapshot(mine.Tree()), "0.1")
	l.close(mine)
	gc := func(older time.Duration) (left int) {
		t.Helper()
		if _, err := mine.GC(t.Context(), older); err != nil {
			t.Errorf("GC = %v, want no error", err)
		}
		entries, err := os.ReadDir(l.cache + "/bases")
		l.check(err)
		return len(entries)
	}
	if got := gc(time.Hour); got != 3 {
		t.Errorf("%d folders in bases, want those of both and the probe at work", got)
	}
	if got := gc(-time.Hour); got != 2 {
		t.Errorf("%d folders in bases, want that of the run that lives and the probe", got)
	}
	l.close(theirs)
	l.remove(clone)
	if got := gc(-time.Hour); got != 1 {
		t.Errorf("%d folders in bases, want only the probe at work", got)
	}
	// Whoever comes back finds everything made again.
	again := l.open(worktree.Options{Session: "again"})
	l.copy(again, l.snapshot(again.Tree()), "0.1")
	l.close(again)
}

// A run holds the layers that its copies are made of, and that of the last snapshot; those of
// batches that are over are anybody's to remove.
func TestARunLetsLayersGo(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	other := l.open(worktree.Options{Session: "other"})
	gc := func() []string {
		t.Helper()
		if _, err := other.GC(t.Context(), -time.Hour); err != nil {
			t.Errorf("GC = %v, want no error", err)
		}
		return l.layersOf()
	}
	var last worktree.Snapshot
	for i := range 4 {
		l.write(l.root, "a", strings.Repeat("a", i+1))
		last = l.snapshot(r.Tree())
		one, two := l.copy(r, last, "0.1"), l.copy(r, last, "0.2")
		l.drop(one)
		if got := gc(); len(got) != min(i+1, 2) {
			t.Errorf("batch %d: layers = %q, want the base and the one in use", i, got)
		}
		l.drop(two)
		l.drop(two) // counts once
	}
	before := gc()
	if len(before) != 2 {
		t.Errorf("layers = %q, want the base and the newest", before)
	}
	l.copy(r, last, "0.1")
	if now := l.layersOf(); !slices.Equal(now, before) {
		t.Errorf("layers for one more batch of the same snapshot = %q, want %q", now, before)
	}
	l.close(r)
	if left := gc(); len(left) > 0 {
		t.Errorf("layers after the run = %q, want none", left)
	}
}
