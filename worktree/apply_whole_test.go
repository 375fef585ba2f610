package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// These tests break into an Apply: an error, a panic, an end, a full disk, somebody else's edit. The
// tree is then as it was before or as it shall be, and never between.

func TestApplyFailsAsAWhole(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	before := l.files(l.root)
	broken := errors.New("broken disk")
	for _, point := range []string{"before replace b", "after replace b", "after replace new/c"} {
		r := l.open(worktree.Options{Fault: func(at string) error {
			if at == point {
				return broken
			}
			return nil
		}})
		s := l.snapshot(r.Tree())
		ch := l.change(r, s, "0.1", func(dir string) {
			l.write(dir, "a", "a 2\n")
			l.write(dir, "b", "b 2\n")
			l.write(dir, "new/c", "c\n")
		})
		_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
		if !errors.Is(err, broken) {
			t.Errorf("%s: Apply = %v, want the fault", point, err)
		}
		same(t, point, l.files(l.root), before)
		if _, err := os.Lstat(l.root + "/new"); err == nil {
			t.Errorf("%s: folder new is left", point)
		}
		l.close(r)
	}
}

func TestApplyKeepsAnEditMadeDuringIt(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	r := l.open(worktree.Options{Fault: func(at string) error {
		switch at {
		case "before replace a":
			l.write(l.root, "b", "user\n") // not replaced yet
		case "before replace b":
			l.write(l.root, "a", "user\n") // replaced already
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "a", "child\n")
		l.write(dir, "b", "child\n")
	})
	_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
	if got, want := conflicts(t, err), []string{"b: edited meanwhile"}; !slices.Equal(got, want) {
		t.Errorf("Apply conflicts = %q, want %q", got, want)
	}
	same(t, "tree", l.files(l.root), map[string]string{"a": `false "user\n"`, "b": `false "user\n"`})
	l.close(r)
}

func TestApplyEndsWhenCancelled(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	before := l.files(l.root)
	ctx, cancel := context.WithCancel(t.Context())
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at == "after replace a" {
			cancel()
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "a", "child\n")
		l.write(dir, "b", "child\n")
	})
	_, err := r.Tree().Apply(ctx, s.Commit, l.merge(r, s.Commit, ch))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Apply = %v, want cancelled", err)
	}
	same(t, "tree", l.files(l.root), before)
	l.close(r)
}

// half makes a change of a, b and c.
func (l *lab) half(r *worktree.Repo, s worktree.Snapshot) string {
	l.Helper()
	return l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) {
		for _, name := range []string{"a", "b", "c"} {
			l.write(dir, name, name+" 2\n")
		}
	}))
}

func TestApplyRollsBackAPanic(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	before := l.files(l.root)
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at == "after replace b" {
			panic("our bug")
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	merged := l.half(r, s)
	func() {
		defer func() {
			if got := recover(); got != "our bug" {
				t.Errorf("Apply panics with %v, want the bug", got)
			}
		}()
		_, err := r.Tree().Apply(t.Context(), s.Commit, merged)
		t.Errorf("Apply = %v, want a panic", err)
	}()
	same(t, "tree", l.files(l.root), before)
	l.close(r)
}

func TestApplyRefusesAHalfAppliedTree(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.write(l.root, "b", "b\n")
	l.commit()
	before := l.files(l.root)
	var hidden string
	broken := errors.New("broken disk")
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at != "after replace b" || hidden != "" {
			return nil
		}
		// What the old files were kept in cannot be reached.
		olds, err := filepath.Glob(l.root + "/.git/skein/runs/*/apply-*/old")
		l.check(err)
		hidden = olds[0]
		l.check(os.Rename(hidden, hidden+".hidden"))
		return broken
	}})
	s := l.snapshot(r.Tree())
	merged := l.half(r, s)
	other := l.merge(r, s.Commit, l.change(r, s, "0.2", func(dir string) { l.write(dir, "d", "d\n") }))
	var c *worktree.ConflictError
	for _, what := range []string{"first", "second"} {
		_, err := r.Tree().Apply(t.Context(), s.Commit, merged)
		if !errors.Is(err, worktree.ErrHalfApplied) || errors.As(err, &c) {
			t.Errorf("%s Apply = %v, want ErrHalfApplied", what, err)
		}
	}
	if _, err := r.Tree().Apply(t.Context(), s.Commit, other); !errors.Is(err, worktree.ErrHalfApplied) {
		t.Errorf("Apply of another change = %v, want ErrHalfApplied", err)
	}
	if _, err := os.Lstat(l.root + "/d"); err == nil {
		t.Errorf("the other change was applied")
	}
	l.check(os.Rename(hidden+".hidden", hidden))
	l.apply(r.Tree(), s.Commit, other)
	before["d"] = `false "d\n"`
	same(t, "tree", l.files(l.root), before)
	l.close(r)
}

// An edit made after a file was looked at and before it is replaced.
func TestApplyKeepsAnEditMadeAtTheLastMoment(t *testing.T) {
	anyWay(t)
	broken := errors.New("broken disk")
	other, err := os.MkdirTemp("/dev/shm", "skein")
	need(t, err == nil, "no second file system")
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	for _, test := range []struct {
		name, file string
		user       func(l *lab, root string)
		want       string
	}{
		{"edited", "edit", func(l *lab, root string) { l.write(root, "edit", "user\n") }, `false "user\n"`},
		{"edited in place", "edit", func(l *lab, root string) { l.check(os.WriteFile(root+"/edit", []byte("user\n"), 0o600)) }, `false "user\n"`},
		{"deleted", "edit", func(l *lab, root string) { l.remove(root, "edit") }, ""},
		{"a link now", "edit", func(l *lab, root string) { l.link(root, "edit", "user") }, "-> user"},
		{"edited, to be deleted", "gone", func(l *lab, root string) { l.write(root, "gone", "user\n") }, `false "user\n"`},
		{"made", "new", func(l *lab, root string) { l.write(root, "new", "user\n") }, `false "user\n"`},
	} {
		for _, far := range []bool{false, true} {
			for _, killed := range []bool{false, true} {
				if (far || killed) && (test.file == "new" || test.want == "") || far && !killed {
					continue // nothing to exchange, or no more than the two together
				}
				name := fmt.Sprintf("%s far=%v killed=%v", test.name, far, killed)
				t.Run(name, func(t *testing.T) {
					l := newLab(t)
					l.write(l.root, "edit", "edit\n")
					l.write(l.root, "gone", "gone\n")
					l.write(l.root, "zz", "zz\n")
					l.commit()
					root := l.root
					if far {
						root = other + "/" + strings.ReplaceAll(name, " ", "-")
						l.git("worktree", "add", "-q", "--detach", root)
					}
					want := l.files(root)
					delete(want, test.file)
					if test.want != "" {
						want[test.file] = test.want
					}
					r := l.openAt(root, worktree.Options{Fault: func(at string) error {
						switch at {
						case "looked at " + test.file:
							test.user(l, root)
						case "exchanged " + test.file:
							if killed {
								return broken
							}
						}
						return nil
					}})
					s := l.snapshot(r.Tree())
					ch := l.change(r, s, "0.1", func(dir string) {
						l.remove(dir, "gone")
						l.write(dir, "edit", "child\n")
						l.write(dir, "new", "child\n")
						l.write(dir, "zz", "child\n")
					})
					_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
					if !killed || !errors.Is(err, broken) {
						kind := ": edited meanwhile"
						if test.file == "new" {
							kind = ": in the way"
						}
						if got := conflicts(t, err); !slices.Equal(got, []string{test.file + kind}) {
							t.Errorf("Apply conflicts = %q, want %s%s", got, test.file, kind)
						}
					}
					same(t, "tree", l.files(root), want)
					l.close(r)
				})
			}
		}
	}
}

// Others may take a snapshot while files are exchanged.
func TestSnapshotDuringApply(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "gone", "gone\n")
	l.write(l.root, "a", "a\n")
	l.commit()
	other := l.open(worktree.Options{Session: "other"})
	l.snapshot(other.Tree()) // a run begins by the lock that Apply holds
	seen := ""
	r := l.open(worktree.Options{Session: "s", Fault: func(at string) error {
		if at == "exchanged gone" {
			seen = l.snapshot(other.Tree()).Commit
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.remove(dir, "gone") })
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	if got := l.git("--git-dir=.git/skein", "ls-tree", "-r", "--name-only", seen); got != "a" {
		t.Errorf("the snapshot holds %q, want a", got)
	}
	l.close(r)
	l.close(other)
}

// A change whose folders the disk does not take is taken back, and where that is not certain
// either the ledger stays for the next try.
func TestApplyNeedsTheDisk(t *testing.T) {
	for _, broken := range []int{1, 100} {
		t.Run(fmt.Sprint(broken, " times"), func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.write(l.root, "dir/gone", "gone\n")
			l.commit()
			before := l.files(l.root)
			var synced []string
			fail := 0
			r := l.open(worktree.Options{Session: "s", Fault: func(point string) error {
				dir, ok := strings.CutPrefix(point, "before sync of "+l.root)
				if !ok {
					return nil
				}
				synced = append(synced, dir)
				if fail > 0 {
					fail--
					return &os.PathError{Op: "sync", Path: dir, Err: syscall.EIO}
				}
				return nil
			}})
			s := l.snapshot(r.Tree())
			ch := l.change(r, s, "0.1", func(dir string) {
				l.write(dir, "a", "child\n")
				l.write(dir, "new/er/file", "child\n")
				l.remove(dir, "dir")
			})
			merged := l.merge(r, s.Commit, ch)
			fail = broken
			_, err := r.Tree().Apply(t.Context(), s.Commit, merged)
			if !errors.Is(err, syscall.EIO) || errors.Is(err, worktree.ErrHalfApplied) != (broken > 1) {
				t.Errorf("Apply = %v, want the disk's error, half applied if it came again", err)
			}
			same(t, "tree", l.files(l.root), before)
			fail, synced = 0, nil
			l.apply(r.Tree(), s.Commit, merged)
			slices.Sort(synced)
			if got, want := slices.Compact(synced), []string{"", "/dir", "/new", "/new/er"}; !slices.Equal(got, want) {
				t.Errorf("folders made durable = %q, want %q", got, want)
			}
			l.close(r)
		})
	}
}
