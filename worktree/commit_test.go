package worktree_test

import (
	"strings"
	"testing"

	"skein/worktree"
)

// The commits we write are those that git would: of the same name, and whole.
func TestCommitsAreThoseOfGit(t *testing.T) {
	anyWay(t)
	for _, format := range []string{"sha1", "sha256"} {
		for _, message := range []string{"work", "work\n", "", "two\n\nparagraphs\n", "ünïcödé\n"} {
			l := newLab(t)
			l.remove(l.root, ".git")
			l.git("init", "-q", "--template=", "-b", "main", "--object-format="+format)
			l.write(l.root, "a", "a\n")
			l.git("config", "user.name", "Ada")
			l.git("config", "user.email", "ada@example.org")
			head := l.commit()
			r := l.open(worktree.Options{Session: "s"})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			l.write(c.Root, "a", "writer\n")
			ch, err := c.Collect(t.Context(), message)
			l.check(err)
			for _, made := range []struct{ id, parent, message string }{{s.Commit, head, "snapshot\n"}, {ch.Commit, s.Commit, message}} {
				date := l.git("--git-dir=.git/skein", "log", "-1", "--format=%ct", made.parent) + " +0000"
				for _, who := range []string{"AUTHOR", "COMMITTER"} {
					t.Setenv("GIT_"+who+"_NAME", "skein")
					t.Setenv("GIT_"+who+"_EMAIL", "skein@localhost")
					t.Setenv("GIT_"+who+"_DATE", date)
				}
				l.write(l.cache, "message", made.message)
				want := l.git("--git-dir=.git/skein", "commit-tree", made.id+"^{tree}", "-p", made.parent, "-F", l.cache+"/message")
				if made.id != want {
					t.Errorf("%s, message %q: commit %s, want git's %s", format, made.message, made.id, want)
				}
			}
			if out, err := l.tryGit(l.root, "--git-dir=.git/skein", "fsck", "--strict"); err != nil || strings.Contains(out, "error") {
				t.Errorf("store: %v\n%s", err, out)
			}
			l.closeKeeping(r)
		}
	}
	// What git would refuse in a message is replaced.
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "a", "writer\n")
	ch, err := c.Collect(t.Context(), "nul \x00 and \xff\n")
	if err != nil {
		t.Fatalf("Collect = %v, want no error", err)
	}
	if got := l.git("--git-dir=.git/skein", "log", "-1", "--format=%s", ch.Commit); got != "nul \uFFFD and \uFFFD" {
		t.Errorf("message = %q", got)
	}
	l.closeKeeping(r)
}
