package worktree_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

// attributed are the places where attributes can be.
var attributed = []struct {
	name string
	put  func(l *lab, text string)
}{
	{"in the tree", func(l *lab, text string) { l.write(l.root, ".gitattributes", text) }},
	{"in the git directory", func(l *lab, text string) { l.write(l.root, ".git/info/attributes", text) }},
	{"the user's", func(l *lab, text string) { l.write(os.Getenv("XDG_CONFIG_HOME"), "git/attributes", text) }},
	{"named by the configuration", func(l *lab, text string) {
		l.write(l.root, ".git/mine", text)
		l.git("config", "core.attributesFile", ".git/mine")
	}},
}

// writeOld writes a file that git does not have to look at again once it knows it.
func (l *lab) writeOld(name, text string) {
	l.Helper()
	l.write(l.root, name, text)
	old := time.Now().Add(-time.Hour)
	l.check(os.Chtimes(l.root+"/"+name, old, old))
}

const rot = "tr a-zA-Z n-za-mN-ZA-M"

// A filter that the repository configures does not run. What git stores of a file below it
// must not get into a copy, and above all not from there into the user's tree.
func TestStoredFormsReplaceNothing(t *testing.T) {
	for _, place := range attributed {
		t.Run(place.name, func(t *testing.T) {
			l := newLab(t)
			place.put(l, "*.x filter=rot\n")
			l.git("config", "filter.rot.clean", rot)
			l.git("config", "filter.rot.smudge", rot)
			l.git("config", "filter.rot.required", "true")
			l.writeOld("s.x", "hello\n")
			l.writeOld("gone.x", "gone\n")
			l.writeOld("plain", "plain\n")
			l.commit()
			if got := l.git("cat-file", "-p", ":s.x"); got != "uryyb" {
				t.Fatalf("git stores %q, want the filter's work", got)
			}
			before := l.files(l.root)
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			if len(s.Left) > 0 {
				t.Errorf("Snapshot left %v, want nothing", s.Left)
			}
			c := l.copy(r, s, "0.1")
			same(t, "copy", l.files(c.Root), before)
			if got := l.gitIn(c.Root, "status", "--porcelain"); got != "" {
				t.Errorf("git status in the copy = %q, want nothing", got)
			}
			if got := l.collect(c); !got.Empty {
				t.Errorf("Collect = %v, want nothing changed", got.Files)
			}
			l.write(c.Root, "s.x", "hello\nWorld\n")
			l.write(c.Root, "new.x", "new\n")
			l.remove(c.Root, "gone.x")
			ch := l.collect(c)
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
			before["s.x"], before["new.x"] = `false "hello\nWorld\n"`, `false "new\n"`
			delete(before, "gone.x")
			same(t, "tree", l.files(l.root), before)
			if got := l.git("diff", "s.x"); !strings.Contains(got, "\n uryyb\n+Jbeyq") {
				t.Errorf("git diff = %s, want one line that is new", got)
			}
			l.drop(c)
			l.close(r)
		})
	}
}

// Too much of it for our store stays as git stores it in a copy, is named, and no change
// of it is applied.
func TestStoredFormsAreNamed(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".git/info/attributes", "*.x filter=point\n")
	l.git("config", "filter.point.clean", "wc -c")
	l.git("config", "filter.point.smudge", "cat")
	large := strings.Repeat("0123456789", 1<<20+1)
	l.writeOld("big.x", large)
	l.writeOld("a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if want := []worktree.Left{{Path: "big.x", Reason: worktree.LeftFilter}}; !slices.Equal(s.Left, want) {
		t.Errorf("Snapshot left %v, want %v", s.Left, want)
	}
	other := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "child\n") })
	merged := l.merge(r, s.Commit, other)
	l.apply(r.Tree(), s.Commit, merged)
	for name, edit := range map[string]func(dir string){
		"0.2": func(dir string) { l.write(dir, "big.x", "changed\n") },
		"0.3": func(dir string) { l.rename(dir+"/big.x", dir+"/renamed") },
	} {
		ch := l.change(r, s, name, edit)
		_, err := r.Tree().Apply(t.Context(), merged, l.merge(r, merged, ch))
		conflict := (*worktree.ConflictError)(nil)
		if !errors.As(err, &conflict) || conflict.Conflicts[0].Path != "big.x" || conflict.Conflicts[0].Kind != worktree.KindFilter {
			t.Errorf("Apply of %s = %v, want a conflict of big.x", name, err)
		}
	}
	if text, err := os.ReadFile(l.root + "/big.x"); err != nil || string(text) != large {
		t.Errorf("big.x = %d bytes, %v, want it as it was", len(text), err)
	}
	l.close(r)
}

// Attributes outside of the tree decide for a filter of the user's own as those in it do.
func TestFiltersOfTheUsersRun(t *testing.T) {
	for _, place := range attributed {
		t.Run(place.name, func(t *testing.T) {
			l := newLab(t)
			place.put(l, "*.up filter=up\n")
			l.userConfig("[filter \"up\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n")
			l.write(l.root, "x.up", "text\n")
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			c := l.copy(r, s, "0.1")
			l.write(c.Root, "x.up", "TEXT\nCHILD\n")
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.collect(c)))
			if got, err := os.ReadFile(l.root + "/x.up"); err != nil || string(got) != "text\nchild\n" {
				t.Errorf("x.up = %q, %v, want the child's through the user's filter", got, err)
			}
			l.drop(c)
			l.close(r)
		})
	}
}

// A writer's git knows the user's own rules, though its box does not show their home.
func TestRulesOfTheUsersComeAlong(t *testing.T) {
	l := newLab(t)
	config := os.Getenv("XDG_CONFIG_HOME")
	l.write(config, "git/attributes", "*.up filter=up\n")
	l.write(config, "git/ignore", "*.mine\n")
	l.write(l.root, "sub/a", "a\n")
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.remove(config, "git")
	l.write(c.Root, "sub/x.mine", "x\n")
	if got, want := l.gitIn(c.Root+"/sub", "check-attr", "filter", "x.up"), "x.up: filter: up"; got != want {
		t.Errorf("git check-attr = %q, want %q", got, want)
	}
	if got := l.gitIn(c.Root+"/sub", "status", "--porcelain"); got != "" {
		t.Errorf("git status = %q, want nothing", got)
	}
	if ch := l.collect(c); !ch.Empty || len(ch.Left) > 0 {
		t.Errorf("Collect = %+v, want nothing", ch)
	}
	l.drop(c)
	l.close(r)
}
