package worktree_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

// Linked worktrees share a store. What a run changed in one of them is not told, and never
// taken back, in another.
func TestRunDiffIsOfThisTree(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	linked := l.TempDir() + "/lin \"k\"ed"
	l.git("worktree", "add", "-q", "--detach", linked)
	diffOf := func(root string) (worktree.RunChange, error) {
		return l.openAt(root, worktree.Options{}).RunDiff(t.Context(), "")
	}
	for _, session := range []string{"main", "linked"} {
		root, other := l.root, linked
		if session == "linked" {
			root, other = linked, l.root
		}
		r := l.openAt(root, worktree.Options{Session: session})
		s := l.snapshot(r.Tree())
		ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", session+"\n") })
		l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
		l.close(r)
		if c, err := diffOf(root); err != nil || c.Session != session {
			t.Errorf("after run %s, RunDiff in its tree = %+v, %v, want that run", session, c, err)
		}
		c, err := diffOf(other)
		if session == "main" && !errors.As(err, new(*worktree.NoRunError)) {
			t.Errorf("after run main, RunDiff in the other tree = %+v, %v, want a NoRunError", c, err)
		}
		if session == "linked" && c.Session != "main" {
			t.Errorf("after run linked, RunDiff in the other tree = %+v, %v, want run main", c, err)
		}
		if _, err := l.openAt(other, worktree.Options{}).RunDiff(t.Context(), session); !errors.As(err, new(*worktree.NoRunError)) {
			t.Errorf("RunDiff(%s) in the other tree = %v, want a NoRunError", session, err)
		}
	}
	// They age for all trees.
	if got, err := l.open(worktree.Options{}).GC(t.Context(), -time.Hour); err != nil || got.Records != 2 {
		t.Errorf("GC = %+v, %v, want both records gone", got, err)
	}
}

// A patch takes a change back, and brings it again, whatever is in the files.
func TestPatchHoldsBinaryFiles(t *testing.T) {
	l := newLab(t)
	for name, text := range map[string]string{"changed": "a\x00b\n", "gone": "\x00gone", "text": "1\n"} {
		l.write(l.root, name, text)
	}
	l.commit()
	before := l.files(l.root)
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "changed", "a\x00c\n")
		l.write(dir, "new", strings.Repeat("\x00\xff", 1000))
		l.write(dir, "text", "2\n")
		l.remove(dir, "gone")
	})
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	l.close(r)
	after := l.files(l.root)
	c, err := r.RunDiff(t.Context(), "s")
	l.check(err)
	patch, err := r.Patch(t.Context(), c.From, c.To)
	l.check(err)
	shown, err := r.Diff(t.Context(), c.From, c.To)
	if err != nil || strings.Contains(shown, "GIT binary patch") {
		t.Errorf("Diff = %q, %v, want no bytes of binary files", shown, err)
	}
	for _, step := range []struct {
		args []string
		want map[string]string
	}{{[]string{"--reverse"}, before}, {nil, after}} {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"apply"}, step.args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = l.root, os.Environ(), strings.NewReader(patch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("git apply %q = %v: %s", step.args, err, out)
		}
		same(t, "tree", l.files(l.root), step.want)
	}
}
