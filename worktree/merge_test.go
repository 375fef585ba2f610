package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/worktree"
)

func TestMergeConflictKinds(t *testing.T) {
	anyWay(t)
	for _, test := range []struct {
		name     string
		one, two func(l *lab, dir string)
		want     []string
	}{
		{
			"content",
			func(l *lab, dir string) { l.write(dir, "text", "1\none\n3\n") },
			func(l *lab, dir string) { l.write(dir, "text", "1\ntwo\n3\n") },
			[]string{"text: content"},
		}, {
			"both add", func(l *lab, dir string) { l.write(dir, "new", "one\n") },
			func(l *lab, dir string) { l.write(dir, "new", "two\n") },
			[]string{"new: add/add"},
		}, {
			"edit against delete", func(l *lab, dir string) { l.write(dir, "text", "1\none\n3\n") },
			func(l *lab, dir string) { l.remove(dir, "text") },
			[]string{"text: modify/delete"},
		}, {
			"delete against edit", func(l *lab, dir string) { l.remove(dir, "text") },
			func(l *lab, dir string) { l.write(dir, "text", "1\ntwo\n3\n") },
			[]string{"text: modify/delete"},
		}, {
			"mode", func(l *lab, dir string) { l.writeMode(dir, "new", "same\n", 0o755) },
			func(l *lab, dir string) { l.writeMode(dir, "new", "same\n", 0o644) },
			[]string{"new: mode"},
		}, {
			"symlink", func(l *lab, dir string) { l.link(dir, "link", "one") },
			func(l *lab, dir string) { l.link(dir, "link", "two") },
			[]string{"link: symlink"},
		}, {
			"binary", func(l *lab, dir string) { l.write(dir, "binary", "\x00one") },
			func(l *lab, dir string) { l.write(dir, "binary", "\x00two") },
			[]string{"binary: binary"},
		}, {
			"several", func(l *lab, dir string) { l.write(dir, "text", "one\n"); l.link(dir, "link", "one") },
			func(l *lab, dir string) {
				l.write(dir, "text", "two\n")
				l.link(dir, "link", "two")
				l.write(dir, "fine", "")
			},
			[]string{"link: symlink", "text: content"},
		}, {
			"name with a newline", func(l *lab, dir string) { l.write(dir, "new\n\"\xff", "one\n") },
			func(l *lab, dir string) { l.write(dir, "new\n\"\xff", "two\n") },
			[]string{"new\n\"\xff: add/add"},
		}, {
			"rename against edit", func(l *lab, dir string) { l.move(dir, "long", "moved"); l.append(dir, "moved", "one\n") },
			func(l *lab, dir string) { l.append(dir, "long", "two\n") },
			[]string{"moved: rename/edit"},
		}, {
			"edit against rename", func(l *lab, dir string) { l.append(dir, "long", "one\n") },
			func(l *lab, dir string) { l.move(dir, "long", "moved"); l.append(dir, "moved", "two\n") },
			[]string{"moved: rename/edit"},
		}, {
			"both rename", func(l *lab, dir string) { l.move(dir, "long", "x") },
			func(l *lab, dir string) { l.move(dir, "long", "y") },
			[]string{"long: rename/rename", "x: rename/rename", "y: rename/rename"},
		}, {
			"rename against delete", func(l *lab, dir string) { l.move(dir, "long", "moved"); l.append(dir, "moved", "one\n") },
			func(l *lab, dir string) { l.remove(dir, "long") },
			[]string{"moved: rename/delete"},
		}, {
			"new file in a renamed folder", func(l *lab, dir string) { l.move(dir, "dir", "other") },
			func(l *lab, dir string) { l.write(dir, "dir/new", "new\n") },
			[]string{"other/new: directory rename"},
		}, {
			"new file in a folder split up", func(l *lab, dir string) { l.move(dir, "dir/x", "one/x"); l.move(dir, "dir/y", "two/y") },
			func(l *lab, dir string) { l.write(dir, "dir/new", "new\n") },
			[]string{"dir: directory rename"},
		}, {
			"edits in a renamed folder are none", func(l *lab, dir string) { l.move(dir, "dir", "other") },
			func(l *lab, dir string) { l.append(dir, "dir/x", "two\n") },
			nil,
		}, {
			"file against folder", func(l *lab, dir string) { l.write(dir, "new", "one\n") },
			func(l *lab, dir string) { l.write(dir, "new/x", "two\n") },
			[]string{"new: file/directory"},
		}, {
			"folder against file", func(l *lab, dir string) { l.write(dir, "new/x", "one\n") },
			func(l *lab, dir string) { l.write(dir, "new", "two\n") },
			[]string{"new: file/directory"},
		}, {
			"file against link", func(l *lab, dir string) { l.write(dir, "new", "one\n") },
			func(l *lab, dir string) { l.link(dir, "new", "two") },
			[]string{"new: symlink"},
		}, {
			"edit against link", func(l *lab, dir string) { l.write(dir, "text", "1\none\n3\n") },
			func(l *lab, dir string) { l.link(dir, "text", "link") },
			[]string{"text: symlink"},
		}, {
			"edit and mode are none", func(l *lab, dir string) { l.write(dir, "text", "1\none\n3\n") },
			func(l *lab, dir string) { l.check(os.Chmod(dir+"/text", 0o755)) },
			nil,
		}, {
			"same edit is none", func(l *lab, dir string) { l.write(dir, "text", "same\n") },
			func(l *lab, dir string) { l.write(dir, "text", "same\n"); l.remove(dir, "binary") },
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "text", "1\n2\n3\n")
			l.write(l.root, "binary", "\x00")
			l.link(l.root, "link", "text")
			for _, name := range []string{"long", "dir/x", "dir/y"} {
				l.write(l.root, name, strings.Repeat(name+"\n", 30))
			}
			l.commit()
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			one := l.change(r, s, "0.1", func(dir string) { test.one(l, dir) })
			two := l.change(r, s, "0.2", func(dir string) { test.two(l, dir) })
			onto := l.merge(r, s.Commit, one)
			merged, err := r.Merge(t.Context(), onto, two)
			if test.want == nil {
				if err != nil || merged == "" {
					t.Errorf("Merge = %q, %v, want a commit", merged, err)
				}
			} else if got := conflicts(t, err); !slices.Equal(got, test.want) {
				t.Errorf("Merge conflicts = %q, want %q", got, test.want)
			}
			l.close(r)
		})
	}
}

func (l *lab) move(dir, from, to string) {
	l.Helper()
	l.check(os.MkdirAll(filepath.Dir(dir+"/"+to), 0o755))
	l.rename(dir+"/"+from, dir+"/"+to)
}

func (l *lab) append(dir, name, text string) {
	l.Helper()
	old, err := os.ReadFile(dir + "/" + name)
	l.check(err)
	l.write(dir, name, string(old)+text)
}

func TestConflictsAreShown(t *testing.T) {
	l := newLab(t)
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintln(i))
	}
	l.write(l.root, "text", strings.Join(lines, ""))
	l.write(l.root, "gone", "gone\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	edit := func(word string) func(string) {
		return func(dir string) {
			mine := slices.Clone(lines)
			mine[10], mine[16], mine[25] = word+" 10\n", word+" 16\n", word+" 25\n"
			l.write(dir, "text", strings.Join(mine, ""))
			l.write(dir, "new", word)
		}
	}
	one := l.change(r, s, "0.1", func(dir string) { edit("one")(dir); l.remove(dir, "gone") })
	two := l.change(r, s, "0.2", func(dir string) { edit("two")(dir); l.write(dir, "gone", "still here\n") })
	onto := l.merge(r, s.Commit, one)
	_, err := r.Merge(t.Context(), onto, two)
	var e *worktree.ConflictError
	if !errors.As(err, &e) || len(e.Conflicts) != 3 {
		t.Fatalf("Merge = %v, want 3 conflicts", err)
	}
	const sides = "<<<<<<< the-changes-before-it\none %[1]d\n=======\ntwo %[1]d\n>>>>>>> 0.2\n"
	want := []string{
		"CONFLICT (modify/delete): gone deleted in the-changes-before-it and modified in 0.2.  Version 0.2 of gone left in tree.\n",
		"@@ line 1 @@\n<<<<<<< the-changes-before-it\none\n=======\ntwo\n>>>>>>> 0.2\n",
		"@@ line 8 @@\n7\n8\n9\n" + fmt.Sprintf(sides, 10) + "11\n12\n13\n14\n15\n" + fmt.Sprintf(sides, 16) + "17\n18\n19\n" +
			"@@ line 31 @@\n22\n23\n24\n" + fmt.Sprintf(sides, 25) + "26\n27\n28\n",
	}
	for i, c := range e.Conflicts {
		if c.Text != want[i] {
			t.Errorf("%s shows %q, want %q", c.Path, c.Text, want[i])
		}
	}

	// Somebody can solve it in a copy, also when the user's repository was cleaned.
	l.git("reflog", "expire", "--expire=now", "--all")
	l.git("gc", "-q", "--prune=now")
	c := l.copy(r, worktree.Snapshot{Commit: e.Marked}, "0.2.solve")
	if got := l.files(c.Root)["text"]; !strings.Contains(got, ">>>>>>> 0.2") {
		t.Errorf("copy of the marked files has %s, want markers", got)
	}
	edit("both")(c.Root)
	solved := l.collect(c)
	l.drop(c)
	if got := l.merge(r, e.Marked, solved); got == "" {
		t.Error("the solved files do not merge")
	}
	l.close(r)
}

func TestNamesThatDifferOnlyInCaseConflict(t *testing.T) {
	for _, ignore := range []string{"true", "false"} {
		l := newLab(t)
		l.commitOne()
		l.git("config", "core.ignoreCase", ignore)
		r := l.open(worktree.Options{})
		s := l.snapshot(r.Tree())
		one := l.change(r, s, "0.1", func(dir string) { l.write(dir, "new/Readme", "one\n") })
		two := l.change(r, s, "0.2", func(dir string) { l.write(dir, "new/README", "two\n") })
		_, err := r.Merge(t.Context(), l.merge(r, s.Commit, one), two)
		if ignore == "false" {
			if err != nil {
				t.Errorf("Merge = %v, want no error where case counts", err)
			}
		} else if got, want := conflicts(t, err), []string{"new/README: case", "new/Readme: case"}; !slices.Equal(got, want) {
			t.Errorf("Merge conflicts = %q, want %q", got, want)
		}
		l.close(r)
	}
}

func TestChangeAndDiff(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "old", strings.Repeat("line\n", 20))
	l.write(l.root, "typed", "x\n")
	l.write(l.root, "gone", "1\n2\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) {
		l.rename(dir+"/old", dir+"/re\nnamed")
		l.link(dir, "typed", "old")
		l.remove(dir, "gone")
		l.write(dir, "binary", "\x00\x01")
	})
	want := []worktree.FileStat{
		{Path: "binary", Status: "A", Added: -1, Removed: -1},
		{Path: "gone", Status: "D", Removed: 2},
		{Path: "re\nnamed", From: "old", Status: "R"},
		{Path: "typed", Status: "T", Added: 1, Removed: 1},
	}
	if !slices.Equal(ch.Files, want) {
		t.Errorf("Collect = %+v, want %+v", ch.Files, want)
	}
	diff, err := r.Diff(t.Context(), ch.Base, ch.Commit)
	for _, part := range []string{"deleted file mode 100644", "rename from old", "new file mode 120000", "Binary files"} {
		if err != nil || !strings.Contains(diff, part) {
			t.Errorf("Diff = %q, %v, want it to hold %q", diff, err, part)
		}
	}
	l.close(r)
}

// Whatever two writers do to different files, and the user to a third kind, the tree
// ends with all of it, and the index as it was.
func TestMergedTreeHoldsEveryChange(t *testing.T) {
	anyWay(t)
	l := newLab(t)
	names := []string{"a", "b c", "d/e", "d/f\n", "g/h/\xff", "i"}
	for _, name := range names {
		l.write(l.root, name, name+" at first, and long enough for no rename to be seen in it\n")
	}
	l.commit()
	checks(t, long(14, 100)) // each is some sixty git calls
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		l.git("reset", "-q", "--hard")
		l.git("clean", "-fdqx")
		n++
		want := l.files(l.root)
		edit := func(dir, who string, mine []string) {
			for _, name := range mine {
				text := fmt.Sprintf("%s %s %d\n", who, name, n)
				switch rapid.IntRange(0, 4).Draw(rt, who+" on "+name) {
				case 0: // left alone
				case 1:
					l.write(dir, name, text)
					want[name] = fmt.Sprintf("false %q", text)
				case 2:
					l.writeMode(dir, name, text, 0o755)
					want[name] = fmt.Sprintf("true %q", text)
				case 3:
					l.remove(dir, name)
					delete(want, name)
				case 4:
					l.link(dir, name, text)
					want[name] = "-> " + text
				}
			}
		}
		order := rapid.Permutation(names).Draw(rt, "files")
		edit(l.root, "user before", order[:1])
		r := l.open(worktree.Options{})
		s := l.snapshot(r.Tree())
		one := l.change(r, s, "0.1", func(dir string) { edit(dir, "one", order[1:3]) })
		two := l.change(r, s, "0.2", func(dir string) { edit(dir, "two", order[3:5]) })
		edit(l.root, "user meanwhile", order[5:])
		index, err := os.ReadFile(l.root + "/.git/index")
		l.check(err)
		m1 := l.merge(r, s.Commit, one)
		l.apply(r.Tree(), s.Commit, m1)
		l.apply(r.Tree(), m1, l.merge(r, m1, two))
		same(rt, "tree", l.files(l.root), want)
		if now, err := os.ReadFile(l.root + "/.git/index"); err != nil || string(now) != string(index) {
			rt.Errorf("the index changed")
		}
		l.close(r)
	})
}

// A file that is called as git would call one that it moved aside is none.
func TestConflictOfNamesLikeGits(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "package~0.2", "base\n")
	l.write(l.root, "d", "base\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	onto := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "package~0.2", "one\n")
		l.remove(dir, "d")
		l.write(dir, "d/x", "one\n")
	}))
	ch := l.change(r, s, "0.2", func(dir string) {
		l.write(dir, "package~0.2", "two\n")
		l.write(dir, "d", "two\n")
	})
	_, err := r.Merge(t.Context(), onto, ch)
	conflict := (*worktree.ConflictError)(nil)
	if !errors.As(err, &conflict) {
		t.Fatalf("Merge = %v, want a conflict", err)
	}
	var paths []string
	for _, c := range conflict.Conflicts {
		paths = append(paths, c.Path)
	}
	if want := []string{"d", "package~0.2"}; !slices.Equal(paths, want) {
		t.Errorf("conflicts in %q, want %q", paths, want)
	}
	if want := []string{"d~0.2"}; !slices.Equal(conflict.Aside, want) {
		t.Errorf("moved aside = %q, want %q", conflict.Aside, want)
	}
	l.close(r)
}

// What git is asked about a conflict does not grow with the files that conflict.
func TestManyConflicts(t *testing.T) {
	anyWay(t)
	l := newLab(t)
	const files = 100
	all := func(text string) func(dir string) {
		return func(dir string) {
			for i := range files {
				l.write(dir, fmt.Sprint("f", i), text)
			}
		}
	}
	all("base\n")(l.root)
	l.commit()
	calls := 0
	r := l.open(worktree.Options{Fault: func(point string) error {
		if strings.HasPrefix(point, "before git ") {
			calls++
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	onto := l.merge(r, s.Commit, l.change(r, s, "0.1", all("one\n")))
	ch := l.change(r, s, "0.2", all("two\n"))
	calls = 0
	_, err := r.Merge(t.Context(), onto, ch)
	conflict := (*worktree.ConflictError)(nil)
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != files || !strings.Contains(conflict.Conflicts[0].Text, "\none\n=======\ntwo\n") {
		t.Errorf("Merge = %v, want %d conflicts with both sides", err, files)
	}
	if calls > 20 {
		t.Errorf("git was called %d times for %d conflicts, want 20 at most", calls, files)
	}
	l.close(r)
}
