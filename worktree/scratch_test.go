package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// crashResolve does a run in which a third writer solves the conflict of two, and kills itself
// at the point whose number CRASH_AT is. It prints how far it came.
func crashResolve(ctx context.Context, root string) error {
	at, err := strconv.Atoi(os.Getenv("CRASH_AT"))
	if err != nil {
		return err
	}
	points := 0
	fault := func(string) error {
		if points++; points == at {
			return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("still alive"))
		}
		return nil
	}
	r, err := worktree.Open(ctx, root, worktree.Options{
		Cache: os.Getenv("CRASH_CACHE"), Session: "dead", Run: "1", Layers: layers(), Box: boxes(), Fault: fault,
	})
	if err != nil {
		return err
	}
	s, err := r.Tree().Snapshot(ctx)
	if err != nil {
		return err
	}
	work := func(c *worktree.Copy, err error) (*worktree.Copy, worktree.Change, error) {
		var ch worktree.Change
		if err != nil {
			return c, ch, err
		}
		end, err := attach(ctx, c, os.Getenv("HOME"))
		if err != nil {
			return c, ch, err
		}
		err = os.WriteFile(c.Root+"/a", []byte(c.Name+"\n"), 0o600)
		fmt.Println("edited", c.Name)
		end()
		c.Attach("")
		if err == nil {
			ch, err = c.Collect(ctx, "work\n")
		}
		return c, ch, err
	}
	one, first, err := work(r.Copy(ctx, s, "0.1"))
	if err != nil {
		return err
	}
	two, second, err := work(r.Copy(ctx, s, "0.2"))
	if err != nil {
		return err
	}
	onto, err := r.Merge(ctx, s.Commit, first)
	if err == nil {
		_, err = one.ApplyTo(ctx, r.Tree(), s.Commit, onto)
	}
	if err == nil {
		_, err = one.Remove(ctx)
	}
	if err != nil {
		return err
	}
	_, err = r.Merge(ctx, onto, second)
	var conflict *worktree.ConflictError
	if !errors.As(err, &conflict) {
		return fmt.Errorf("merge: %w, want a conflict", err)
	}
	three, solved, err := work(r.Scratch(ctx, s, conflict.Marked, "0.3"))
	if err != nil {
		return err
	}
	merged, err := r.Merge(ctx, onto, solved)
	if err == nil {
		_, err = two.ApplyTo(ctx, r.Tree(), onto, merged)
	}
	for _, c := range []*worktree.Copy{three, two} {
		if err == nil {
			_, err = c.Remove(ctx)
		}
	}
	if err == nil {
		_, err = r.Close(ctx)
	}
	fmt.Println("points", points)
	return err
}

// Killed at any point while a conflict is solved, the change that conflicts is in the tree, as
// the solution has it, or kept; and nothing is kept of the copy in which it was solved.
func TestResolvingKilledAnywhere(t *testing.T) {
	anyWay(t)
	total := 0
	{
		l := newLab(t)
		l.teamRepo()
		out, _ := l.crashed("resolve", l.root, 0)
		if _, err := fmt.Sscan(out[strings.LastIndex(out, " ")+1:], &total); err != nil || total < 50 {
			t.Fatalf("the run says %q, want how many points there are", out)
		}
	}
	tries := min(total, long(12, total))
	ends := map[string]int{}
	for i := range tries {
		from, to := i*total/tries, (i+1)*total/tries
		at := 1 + from + rand.IntN(to-from)
		if i == tries-1 {
			at = total // after the solution is in the tree there are few
		}
		l := newLab(t)
		l.teamRepo()
		out, _ := l.crashed("resolve", l.root, at)
		what := fmt.Sprint("killed at ", at)
		r := l.open(worktree.Options{Session: "next"})
		done, err := r.Recover(t.Context())
		if err != nil {
			t.Fatalf("%s: Recover = %v, want no error", what, err)
		}
		for _, rec := range done {
			if rec.Action == worktree.Failed {
				t.Errorf("%s: Recover = %+v, want no failure", what, rec)
			}
		}
		kept := map[string]bool{}
		for _, k := range l.kept(r, "dead") {
			kept[k.Name] = true
		}
		got := l.files(l.root)["a"]
		ends[got]++
		want := map[string]bool{} // what is kept of that which was done
		switch got {
		case `false "a\n"`:
			want["0.1"], want["0.2"] = strings.Contains(out, "edited 0.1"), strings.Contains(out, "edited 0.2")
		case `false "0.1\n"`:
			want["0.2"] = true
		case `false "0.3\n"`:
		default:
			t.Errorf("%s: a is %s", what, got)
		}
		for _, name := range []string{"0.1", "0.2", "0.3"} {
			if kept[name] != want[name] {
				t.Errorf("%s, a is %s: kept %v, want %v", what, got, kept, want)
			}
		}
		l.clean(what, len(kept) > 0)
		l.close(r)
	}
	t.Logf("killed at %d of %d points, the tree was: %v", tries, total, ends)
	if tries >= 5 && len(ends) < 3 {
		t.Errorf("the tree was %v, want all three ends", ends)
	}
}

// What is done in a copy for trying something is nobody's change, unless it is collected.
func TestScratchIsNotKept(t *testing.T) {
	anyWay(t)
	l := newLab(t)
	l.teamRepo()
	r := l.open(worktree.Options{Session: "dead"})
	s := l.snapshot(r.Tree())
	merged := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "1\n") }))
	c, err := r.Scratch(t.Context(), s, merged, "0.1-check")
	l.check(err)
	if got := l.files(c.Path)["a"]; c.Layers() == nil && got != `false "1\n"` {
		t.Errorf("the copy has a = %s, want what was merged", got)
	}
	l.write(c.Root, "new", "new\n")
	kept, err := r.Close(t.Context())
	if err != nil || len(kept) > 0 || len(l.kept(r, "dead")) > 0 {
		t.Errorf("Close = %v, %v, want nothing kept", kept, err)
	}
	l.clean("after Close", false)
}
