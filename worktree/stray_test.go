package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/worktree"
)

// Somebody removes our git directory while a writer works: no ref holds its change, which is
// said, and the copy is told of at the next start, and listed as long as it is there.
func TestStoreRemovedMeanwhile(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "dead"})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "a", "work\n")
	c.Attach("")
	ch, err := c.Collect(t.Context(), "work\n")
	l.check(err)
	store := l.root + "/.git/skein"
	l.check(os.RemoveAll(store))

	isGone := func(what string, err error) {
		t.Helper()
		gone, ok := errors.AsType[*worktree.GoneError](err)
		if !ok || gone.Path != store || !strings.Contains(err.Error(), store) || strings.Contains(err.Error(), "/bin/git") {
			t.Errorf("%s = %v, want it to say that %s is gone", what, err, store)
		}
	}
	_, err = c.Collect(t.Context(), "work\n")
	isGone("Collect", err)
	_, err = r.Keep(t.Context(), ch, "0.1", "test")
	isGone("Keep", err)
	_, err = r.Merge(t.Context(), ch.Base, ch)
	isGone("Merge", err)
	kept, err := r.Close(t.Context())
	isGone("Close", err)
	if len(kept) != 1 || kept[0].Action != worktree.Failed || kept[0].Folder == "" {
		t.Errorf("Close = %+v, want it to name the copy", kept)
	}

	next := l.open(worktree.Options{Session: "next"})
	for start := range 2 {
		done, err := next.Recover(t.Context())
		if err != nil || len(done) != 1-start {
			t.Fatalf("Recover at start %d = %+v, %v, want the copy told of once", start, done, err)
		}
		for _, rec := range done {
			if text, err := os.ReadFile(rec.Folder + "/a"); rec.Session != "dead" || rec.Name != "0.1" || err != nil || string(text) != "work\n" {
				t.Errorf("Recover = %+v, want the files of the copy: a = %q, %v", rec, text, err)
			}
		}
		strays, err := next.Strays()
		if err != nil || len(strays) != 1 || strays[0].Name != "0.1" || strays[0].Folder != folder(c) {
			t.Errorf("Strays = %+v, %v, want the copy", strays, err)
		}
		l.snapshot(next.Tree()) // makes another store, that knows nothing of it
	}
	l.close(next)
	_ = os.Chmod(filepath.Join(folder(c), "work", "work"), 0o700) // the kernel's, of layers: closed to all but root
	l.check(os.RemoveAll(folder(c)))
	if strays, err := next.Strays(); err != nil || len(strays) != 0 {
		t.Errorf("Strays without the copy = %+v, %v, want none", strays, err)
	}
}

func TestCopyOfALiveRunIsNoStray(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "live"})
	l.copy(r, l.snapshot(r.Tree()), "0.1")
	if strays, err := l.open(worktree.Options{}).Strays(); err != nil || len(strays) != 0 {
		t.Errorf("Strays = %+v, %v, want none", strays, err)
	}
	l.close(r)
}

// Somebody removes the cache while a writer works.
func TestCacheRemovedMeanwhile(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	c.Attach("")
	l.check(os.RemoveAll(folder(c)))
	_, err := c.Collect(t.Context(), "work\n")
	if gone, ok := errors.AsType[*worktree.GoneError](err); !ok || gone.Path != folder(c) {
		t.Errorf("Collect = %v, want it to say that %s is gone", err, folder(c))
	}
	kept, err := r.Close(t.Context())
	if err != nil || len(kept) != 1 || kept[0].Action != worktree.Failed || kept[0].Folder != "" {
		t.Errorf("Close = %+v, %v, want it to say that nothing is left", kept, err)
	}
	if left, _ := filepath.Glob(l.root + "/.git/skein/runs/*"); len(left) > 0 {
		t.Errorf("left %v, want nothing", left)
	}
}

// Where the git directory cannot be written the store is in the cache, and is found again
// when the repository was moved.
func TestStoreInTheCacheIsFoundAfterAMove(t *testing.T) {
	if ordinary(t) {
		return
	}
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.check(os.Chmod(l.root+"/.git", 0o500))
	r := l.open(worktree.Options{Session: "dead"})
	l.keep(r, l.snapshot(r.Tree()), "0.1", "test", func(dir string) { l.write(dir, "a", "child\n") })
	live := l.open(worktree.Options{Session: "live"})
	l.snapshot(live.Tree())
	l.close(r)
	if list, err := r.Moved(); err != nil || len(list) != 0 {
		t.Errorf("Moved before the move = %+v, %v, want none", list, err)
	}
	old := l.root
	l.root += ".moved"
	l.check(os.Rename(old, l.root))
	t.Cleanup(func() { _ = os.Chmod(l.root+"/.git", 0o700) })

	// While a run works with it, it stays where it is, and is told of.
	r = l.open(worktree.Options{})
	if list := l.kept(r, ""); len(list) != 0 {
		t.Errorf("kept while another run lives = %+v, want none", list)
	}
	if list, err := r.Moved(); err != nil || len(list) != 1 || list[0].Was != old+"/.git" {
		t.Errorf("Moved = %+v, %v, want the one of %s", list, err, old)
	}
	l.check(os.Rename(l.root, old))
	l.close(live)
	l.check(os.Rename(old, l.root))

	list := l.kept(r, "")
	if len(list) != 1 || list[0].Name != "0.1" || list[0].Err != nil {
		t.Fatalf("kept = %+v, want 0.1", list)
	}
	if _, err := r.MergeKept(t.Context(), list[0]); err != nil {
		t.Errorf("MergeKept = %v, want no error", err)
	}
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "child\n"`})
	if list, err := r.Moved(); err != nil || len(list) != 0 {
		t.Errorf("Moved = %+v, %v, want none", list, err)
	}
	l.close(r)
}

// Another repository takes nothing over, whatever lies in the cache.
func TestStoreOfAnotherRepositoryStaysItsOwn(t *testing.T) {
	if ordinary(t) {
		return
	}
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.duplicate(l.root, l.root+".twin")
	l.check(os.Chmod(l.root+"/.git", 0o500))
	r := l.open(worktree.Options{Session: "dead"})
	l.keep(r, l.snapshot(r.Tree()), "0.1", "test", func(dir string) { l.write(dir, "a", "child\n") })
	l.close(r)
	old := l.root
	l.check(os.Rename(old, old+".moved"))
	t.Cleanup(func() { _ = os.Chmod(old+".moved/.git", 0o700) })
	l.root += ".twin"
	twin := l.open(worktree.Options{})
	if list := l.kept(twin, ""); len(list) != 0 {
		t.Errorf("kept = %+v, want none", list)
	}
	if list, err := twin.Moved(); err != nil || len(list) != 1 || list[0].Was != old+"/.git" {
		t.Errorf("Moved = %+v, %v, want the one of %s", list, err, old)
	}
}
