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

// conflicts turns an error into "path: kind" lines; it fails the test for any other.
func conflicts(t *testing.T, err error) []string {
	t.Helper()
	var e *worktree.ConflictError
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a ConflictError", err)
	}
	var lines []string
	for _, c := range e.Conflicts {
		lines = append(lines, c.Path+": "+c.Kind)
	}
	return lines
}

func TestTwoWritersOfOneFileMergeInOrder(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "poem", "1\n2\n3\n4\n5\n6\n7\n8\n")
	l.commit()
	l.write(l.root, "notes", "staged\n")
	l.git("add", "notes")
	before := l.users()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	one := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "poem", "one\n2\n3\n4\n5\n6\n7\n8\n")
		l.write(dir, "added", "by one\n")
	})
	two := l.change(r, s, "0.2", func(dir string) { l.write(dir, "poem", "1\n2\n3\n4\n5\n6\n7\ntwo\n") })
	m1 := l.merge(r, s.Commit, one)
	m2 := l.merge(r, m1, two)
	l.apply(r.Tree(), s.Commit, m1)
	// The user goes on editing between the two.
	l.write(l.root, "poem", "one\n2\n3\n4\nuser\n6\n7\n8\n")
	a := l.apply(r.Tree(), m1, m2)
	want := map[string]string{
		"poem":  `false "one\n2\n3\n4\nuser\n6\n7\ntwo\n"`,
		"added": `false "by one\n"`,
		"notes": `false "staged\n"`,
	}
	same(t, "tree", l.files(l.root), want)
	if got := []worktree.FileStat{{Path: "poem", Status: "M", Added: 1, Removed: 1}}; !slices.Equal(a.Files, got) {
		t.Errorf("Apply = %+v, want %+v", a.Files, got)
	}
	if got, want := l.git("status", "--porcelain"), "A  notes\n M poem\n?? added"; got != want {
		t.Errorf("git status = %q, want %q", got, want)
	}
	l.close(r)
	if index := strings.SplitN(before, "\n", 2)[0]; index != strings.SplitN(l.users(), "\n", 2)[0] {
		t.Errorf("the index changed")
	}
	if again := l.merge(r, m1, two); again != m2 {
		t.Errorf("Merge again = %s, want the same commit %s", again, m2)
	}
}

func TestApplyEveryKindOfChange(t *testing.T) {
	l := newLab(t)
	l.dirty()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	var want map[string]string
	ch := l.change(r, s, "0.1", func(dir string) {
		l.remove(dir, "same", "dir", "file-to-dir", "dir-to-file", "dir-to-link", "link", "typed", "bad\xff\xfeutf8")
		l.write(dir, "file-to-dir", "a file again\n")
		l.write(dir, "dir-to-file/deep/x", "a folder again\n")
		l.write(dir, "dir", "a file now\n")
		l.write(dir, "link", "a file now\n")
		l.link(dir, "typed", "somewhere")
		l.link(dir, "staged", "both")
		l.writeMode(dir, "mode", "mode\n", 0o644)
		l.writeMode(dir, "unstaged", "unstaged 2\n", 0o755)
		l.write(dir, "binary", "\x00\x01")
		l.write(dir, "new\nline", "changed")
		l.write(dir, "worse\xff/\x80name", "bytes")
		l.write(dir, "a/b/c/d", "deep\n")
		l.write(dir, "new.log", "ignored\n")
		want = l.files(dir, "new.log")
	})
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root, "ignored.log", "build", ".skein"), want)
	l.close(r)
}

// Where a link to a folder goes, what it led to is not in the way of a folder in its place.
func TestApplyPutsAFolderInPlaceOfALinkToOne(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "real/inner", "real\n")
	l.write(l.root, "real/deep/er", "real\n")
	l.link(l.root, "link", "real")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	var want map[string]string
	ch := l.change(r, s, "0.1", func(dir string) {
		l.remove(dir, "link")
		l.write(dir, "link/inner", "new\n")
		l.write(dir, "link/deep/er", "new\n")
		want = l.files(dir)
	})
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	same(t, "tree", l.files(l.root, ".skein"), want)
	l.close(r)
}

func TestApplyKeepsWhatIsInTheWay(t *testing.T) {
	for _, test := range []struct {
		name  string
		child func(l *lab, dir string)
		user  func(l *lab)
		want  string
	}{
		{
			"ignored file",
			func(l *lab, dir string) { l.write(dir, ".gitignore", ""); l.write(dir, "out.log", "child\n") },
			func(l *lab) { l.write(l.root, "out.log", "precious\n") },
			"out.log: in the way",
		}, {
			"ignored folder",
			func(l *lab, dir string) { l.write(dir, ".gitignore", ""); l.write(dir, "out.log", "child\n") },
			func(l *lab) { l.write(l.root, "out.log/precious", "precious\n") },
			"out.log: in the way",
		}, {
			"folder is an ignored link",
			func(l *lab, dir string) { l.write(dir, ".gitignore", ""); l.write(dir, "way.log/file", "child\n") },
			func(l *lab) { l.link(l.root, "way.log", "/tmp") },
			"way.log/file: in the way",
		}, {
			"ignored file in a folder that becomes a file",
			func(l *lab, dir string) { l.remove(dir, "dir"); l.write(dir, "dir", "child\n") },
			func(l *lab) { l.write(l.root, "dir/my.log", "precious\n") },
			"dir: in the way",
		}, {
			"empty file made meanwhile",
			func(l *lab, dir string) { l.write(dir, "fresh", "child\n") },
			func(l *lab) { l.write(l.root, "fresh", "precious\n") },
			"fresh: add/add",
		}, {
			"edit of the same line",
			func(l *lab, dir string) { l.write(dir, "text", "child\n") },
			func(l *lab) { l.write(l.root, "text", "user\n") },
			"text: content",
		}, {
			"edit of a deleted file",
			func(l *lab, dir string) { l.remove(dir, "text") },
			func(l *lab) { l.write(l.root, "text", "user\n") },
			"text: modify/delete",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, ".gitignore", "*.log\n")
			l.write(l.root, "text", "text\n")
			l.write(l.root, "dir/file", "file\n")
			l.commit()
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			ch := l.change(r, s, "0.1", func(dir string) {
				l.write(dir, "aaa", "first\n")
				test.child(l, dir)
			})
			test.user(l)
			before := l.files(l.root)
			_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
			if got := conflicts(t, err); !slices.Equal(got, []string{test.want}) {
				t.Errorf("Apply conflicts = %q, want %q", got, test.want)
			}
			same(t, "tree", l.files(l.root), before)
			l.close(r)
		})
	}
}

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
