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
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"skein/worktree"
)

// makeBase has the base of the tree made, if nobody else did, or kills itself half-way. It
// prints which it is.
func makeBase(ctx context.Context, root string) error {
	r, err := worktree.Open(ctx, root, worktree.Options{
		Cache: os.Getenv("CRASH_CACHE"), Session: os.Getenv("CRASH_SESSION"), Run: "1", Layers: layers(),
		Fault: func(point string) error {
			if point == os.Getenv("CRASH_AT") {
				return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("still alive"))
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	s, err := r.Tree().Snapshot(ctx)
	if err != nil {
		return err
	}
	c, err := r.Copy(ctx, s, "0.1")
	if err != nil {
		return err
	}
	fmt.Println(c.Layers().Base)
	_, err = r.Close(ctx)
	return err
}

// rival is a process that makes the base; at is where it kills itself, "" nowhere.
func (l *lab) rival(session, at string) (base string, err error) {
	cmd := exec.CommandContext(l.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CRASH_ROOT="+l.root, "CRASH_CACHE="+l.cache, "CRASH_IN=base", "CRASH_SESSION="+session, "CRASH_AT="+at)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rival %s: %w: %s", session, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// layersOf lists what is in the folders with layers.
func (l *lab) layersOf() (names []string) {
	l.Helper()
	found, err := filepath.Glob(l.cache + "/bases/*/*")
	l.check(err)
	for _, path := range found {
		if name := filepath.Base(path); name != "lock" {
			names = append(names, name)
		}
	}
	return names
}

// Processes that need the same base at once share one, whatever one that died left.
func TestRivalsShareOneBase(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	if _, err := l.rival("dead", "before layer"); err == nil {
		t.Fatal("a process killed at the base = no error, want it killed")
	}
	if left := l.layersOf(); len(left) != 1 || !strings.HasPrefix(left[0], "new-") {
		t.Fatalf("after the kill there is %q, want a base half made", left)
	}
	bases := make([]string, 6)
	var all errgroup.Group
	for i := range bases {
		all.Go(func() (err error) {
			bases[i], err = l.rival(fmt.Sprint("rival-", i), "")
			return err
		})
	}
	l.check(all.Wait())
	if same := slices.Compact(slices.Clone(bases)); len(same) != 1 || same[0] == "" {
		t.Errorf("bases = %q, want one for all", bases)
	}
	if left := l.layersOf(); len(left) != 1 || strings.HasPrefix(left[0], "new-") {
		t.Errorf("layers = %q, want one base", left)
	}
	same(t, "base", l.files(bases[0]), l.files(l.root))
}

// Nobody removes a base that a run uses, however old it is; afterwards it goes.
func TestABaseInUseStays(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "lives"})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	mine := filepath.Base(filepath.Dir(c.Layers().Base))
	others := func(round string) {
		for i := range 5 { // more than stay unused
			l.write(l.root, ".gitattributes", fmt.Sprintf("*.none%s%d text\n", round, i)) // nobody's base serves another
			if _, err := l.rival(fmt.Sprint("other-", i), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	others("a")
	if left := l.layersOf(); !slices.Contains(left, mine) {
		t.Errorf("layers = %q, want the one in use, %s", left, mine)
	}
	l.drop(c)
	l.close(r)
	others("b")
	if left := l.layersOf(); slices.Contains(left, mine) {
		t.Errorf("layers = %q, want the oldest gone, %s", left, mine)
	}
}

// onlyLayers skips what is about layers where copies are not made of them.
func onlyLayers(t *testing.T) {
	t.Helper()
	if os.Getenv(onOverlay) == "" {
		t.Skip("run with the other tests on overlay copies")
	}
}
