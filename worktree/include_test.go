package worktree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// withIncludes makes a repository with ignored files of which some come along.
func withIncludes(t *testing.T) *lab {
	l := newLab(t)
	l.write(l.root, ".gitignore", "*.local\n/cache/\n/deep/*\n")
	l.write(l.root, ".worktreeinclude", "# settings\n*.local\n!no.local\n/cache/\nknown\nfresh\n/deep/in/\n")
	l.write(l.root, "known", "known\n")
	l.commit()
	l.write(l.root, "fresh", "not ignored: in the snapshot\n")
	l.write(l.root, "a.local", "a\n")
	l.write(l.root, "no.local", "no\n")
	l.write(l.root, "dir/b c\n\xff.local", "b\n")
	l.writeMode(l.root, "cache/tool", "tool\n", 0o755)
	l.write(l.root, "deep/in/x", "x\n")
	l.write(l.root, "deep/out/y", "y\n")
	return l
}

func TestIgnoredFilesComeAlong(t *testing.T) {
	ordinary(t)
	l := withIncludes(t)
	l.link(l.root, "link.local", "/etc/passwd")
	l.check(syscall.Mkfifo(l.root+"/pipe.local", 0o600))
	l.write(l.root, "shut.local", "shut\n")
	l.check(os.Chmod(l.root+"/shut.local", 0))
	l.write(l.root, "cache/nested/file", "x\n")
	l.gitIn(l.root+"/cache/nested", "init", "-q")
	before := l.users()
	want := l.files(l.root, "no.local", "deep/out", "pipe.local", "cache/nested", "shut.local")
	without := []worktree.Left{{Path: "shut.local", Reason: worktree.LeftUnreadable}}
	if os.Getuid() == 0 {
		want["shut.local"], without = `false "shut\n"`, nil
	}
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	same(t, "copy", l.files(c.Root), want)
	if !slices.Equal(c.Without, without) {
		t.Errorf("Without = %+v, want %+v", c.Without, without)
	}
	for _, name := range []string{"cache/tool", "a.local"} {
		old, err := os.Stat(l.root + "/" + name)
		l.check(err)
		if got, err := os.Stat(c.Root + "/" + name); err != nil || !got.ModTime().Equal(old.ModTime()) || got.Mode() != old.Mode() {
			t.Errorf("%s came along as %v, %v, want its time and mode", name, got, err)
		}
	}
	if ch := l.collect(c); !ch.Empty || len(ch.Left) > 0 {
		t.Errorf("Collect = %+v, want nothing", ch)
	}
	if now := l.users(); now != before {
		t.Errorf("the user's repository changed:\n%s\nwant\n%s", now, before)
	}
	l.close(r)
}

// What came along goes to the writer's own writers too, and is never collected, though
// the writer makes git take it.
func TestWhatCameAlongIsNotCollected(t *testing.T) {
	l := withIncludes(t)
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, ".gitignore", "")
	l.write(c.Root, "a.local", "changed\n")
	l.write(c.Root, "mine.local", "of the writer\n")
	l.remove(c.Root, ".worktreeinclude")
	nested := l.copy(r, l.snapshot(c.Tree()), "0.1.1")
	if got := l.files(nested.Root)["a.local"]; got != `false "changed\n"` {
		t.Errorf("the writer's own writer has a.local = %s, want what the writer has", got)
	}
	for _, c := range []*worktree.Copy{nested, c} {
		ch := l.collect(c)
		for _, f := range ch.Files {
			if f.Path == "a.local" || strings.HasPrefix(f.Path, "cache/") || strings.HasPrefix(f.Path, "deep/") {
				t.Errorf("%s: collected %s, which came along", c.Name, f.Path)
			}
		}
		if !slices.Contains(ch.Left, worktree.Left{Path: "a.local", Reason: worktree.LeftIncluded}) {
			t.Errorf("%s: left %v, want a.local among it", c.Name, ch.Left)
		}
	}
	if ch := l.collect(c); !slices.ContainsFunc(ch.Files, func(f worktree.FileStat) bool { return f.Path == "mine.local" }) {
		t.Errorf("Collect = %+v, want the writer's own file in it", ch.Files)
	}
	if left := l.drop(c); left == "" {
		t.Error("what the writer changed of what came along is gone")
	} else if text, err := os.ReadFile(filepath.Join(left, "a.local")); err != nil || string(text) != "changed\n" {
		t.Errorf("put aside = %q, %v, want what the writer made of it", text, err)
	}
	l.drop(nested)
	l.close(r)
}

// A repository's .worktreeinclude, and what it names, may be anything.
func TestIncludeFileIsOnlyData(t *testing.T) {
	outside := t.TempDir()
	for name, plant := range map[string]func(l *lab){
		"FIFO": func(l *lab) { l.check(syscall.Mkfifo(l.root+"/.worktreeinclude", 0o600)) },
		"link": func(l *lab) {
			l.write(outside, "rules", "*.local\n")
			l.link(l.root, ".worktreeinclude", outside+"/rules")
		},
		"folder": func(l *lab) { l.write(l.root, ".worktreeinclude/x", "*.local\n") },
		"huge":   func(l *lab) { l.write(l.root, ".worktreeinclude", strings.Repeat("*.local\n", 1<<18)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, ".gitignore", "*.local\n")
			l.commit()
			l.write(l.root, "a.local", "a\n")
			plant(l)
			r := l.open(worktree.Options{})
			c := l.copy(r, l.snapshot(r.Tree()), "0.1")
			if got, ok := l.files(c.Root)["a.local"]; ok {
				t.Errorf("a.local came along as %s, want nothing", got)
			}
			l.close(r)
		})
	}
}
