package worktree_test

import (
	"errors"
	"slices"
	"strings"
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
