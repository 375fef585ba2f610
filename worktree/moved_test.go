package worktree_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"skein/worktree"
)

// halfApplied makes the repository and kills a run that had applied half of its change
// to the tree.
func halfApplied(t *testing.T, prepare func(l *lab) (root string)) (l *lab, root string, before, half map[string]string) {
	t.Helper()
	for at := 1; ; at++ {
		l = newLab(t)
		l.crashRepo()
		root = prepare(l)
		before = l.files(root)
		if l.killAt("replace", root, at) == "" {
			t.Fatal("no run was killed in the middle of Apply")
		}
		half = l.files(root)
		if half["a"] == `false "a 2\n"` && half["f"] == before["f"] && half["d/e/new"] == "" {
			return l, root, before, half
		}
	}
}

// recovered opens a tree and recovers; it returns what was done, without what failed.
func (l *lab) recovered(dir string) []string {
	l.Helper()
	r := l.openAt(dir, worktree.Options{Session: "next"})
	done, err := r.Recover(l.Context())
	if err != nil {
		l.Errorf("Recover = %v, want no error", err)
	}
	var actions []string
	for _, rec := range done {
		if rec.Err != nil {
			l.Errorf("Recover = %+v, want no failure", rec)
		}
		actions = append(actions, rec.Action)
	}
	l.close(r)
	return actions
}

// duplicate copies a tree with all that cp can copy.
func (l *lab) duplicate(from, to string) {
	l.Helper()
	if out, err := exec.CommandContext(l.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		l.Fatalf("cp -a: %v\n%s", err, out)
	}
}

func mainTree(l *lab) string { return l.root }

func linkedTree(l *lab) string {
	l.git("commit", "-q", "-m", "staged")
	root := l.TempDir() + "/linked"
	l.git("worktree", "add", "-q", "--detach", root)
	return root
}

func TestMovedTreeIsRolledBack(t *testing.T) {
	anyWay(t)
	for name, prepare := range map[string]func(l *lab) string{"main": mainTree, "linked": linkedTree} {
		t.Run(name, func(t *testing.T) {
			l, root, before, _ := halfApplied(t, prepare)
			moved := root + ".moved"
			l.check(os.Rename(root, moved))
			if got, want := l.recovered(moved), []string{worktree.RolledBack, worktree.Kept}; !slices.Equal(got, want) {
				t.Errorf("Recover in the moved tree = %q, want %q", got, want)
			}
			same(t, "moved tree", l.files(moved), before)
			if left, _ := filepath.Glob(l.cache + "/copies/*"); len(left) > 0 {
				t.Errorf("copies left = %v, want none", left)
			}
		})
	}
}

func TestCopiedTreeIsRolledBackByItsOwnLedger(t *testing.T) {
	anyWay(t)
	for _, first := range []string{"the original", "the copy"} {
		t.Run(first+" first", func(t *testing.T) {
			l, root, before, half := halfApplied(t, mainTree)
			twin := root + ".twin"
			l.duplicate(root, twin)
			if first == "the copy" {
				if got, want := l.recovered(twin), []string{worktree.RolledBack}; !slices.Equal(got, want) {
					t.Errorf("Recover in the copy = %q, want %q", got, want)
				}
				same(t, "original", l.files(root), half)
				same(t, "copy", l.files(twin), before)
			}
			if got, want := l.recovered(root), []string{worktree.RolledBack, worktree.Kept}; !slices.Equal(got, want) {
				t.Errorf("Recover in the original = %q, want %q", got, want)
			}
			same(t, "original", l.files(root), before)
			if first == "the original" {
				same(t, "copy", l.files(twin), half)
				if got, want := l.recovered(twin), []string{worktree.RolledBack}; !slices.Equal(got, want) {
					t.Errorf("Recover in the copy = %q, want %q", got, want)
				}
				same(t, "copy", l.files(twin), before)
			}
		})
	}
}

// A linked worktree that was copied shares its git directory with the original: what
// was applied to the one is not rolled back in the other.
func TestCopyOfALinkedTreeIsNotTheOneMeant(t *testing.T) {
	anyWay(t)
	l, root, before, half := halfApplied(t, linkedTree)
	twin := root + ".twin"
	l.duplicate(root, twin)
	l.recovered(twin)
	same(t, "original", l.files(root), before)
	if got := l.files(twin); !maps.Equal(got, half) {
		t.Errorf("copy = %v, want it as it was", got)
	}
}
