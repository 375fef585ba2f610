package worktree_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/worktree"
)

// A cache may be cleared at any time: what a writer did then is still what it did.
func TestLayersVanishMeanwhile(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	l.write(l.root, "untracked", "the user's\n")
	want := l.files(l.root)
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	l.write(c.Root, "new", "new\n")
	l.check(os.RemoveAll(l.cache + "/bases"))
	ch := l.collect(c)
	if len(ch.Files) != 1 || ch.Files[0].Path != "new" {
		t.Errorf("Collect = %+v, want the new file", ch.Files)
	}
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	want["new"] = `false "new\n"`
	same(t, "tree", l.files(l.root), want)
	l.drop(c)
	l.close(r)
}

// Somebody who changes what runs share does not change what writers start from.
func TestLayersAreNotBelievedWhenTheyChanged(t *testing.T) {
	onlyLayers(t)
	for name, damage := range map[string]func(l *lab, layer string){
		"nothing":       func(*lab, string) {},
		"short file":    func(l *lab, layer string) { l.check(os.Truncate(layer+"/tree/a", 0)) },
		"same size":     func(l *lab, layer string) { l.write(layer, "tree/a", "b\n") },
		"file gone":     func(l *lab, layer string) { l.check(os.Remove(layer + "/tree/a")) },
		"file more":     func(l *lab, layer string) { l.write(layer, "tree/more", "more\n") },
		"executable":    func(l *lab, layer string) { l.check(os.Chmod(layer+"/tree/a", 0o755)) },
		"empty index":   func(l *lab, layer string) { l.check(os.Truncate(layer+"/index", 0)) },
		"empty lease":   func(l *lab, layer string) { l.check(os.Truncate(layer+"/lease", 0)) },
		"another start": func(l *lab, layer string) { l.append(layer, "lease", "\nanother") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			base := func(session string) string {
				r := l.open(worktree.Options{Session: session})
				c := l.copy(r, l.snapshot(r.Tree()), "0.1")
				same(t, "copy", l.files(c.Root), l.files(l.root))
				defer l.close(r)
				return filepath.Dir(c.Layers().Base)
			}
			layer := base("one")
			before, err := os.Stat(layer)
			l.check(err)
			damage(l, layer)
			after, err := os.Stat(base("two"))
			if again := !os.SameFile(before, after); err != nil || again == (name == "nothing") {
				t.Errorf("base made again = %v, %v, want that only where it was changed", again, err)
			}
		})
	}
}

// What looks like a pattern in the user's paths is none.
func TestPathsThatLookLikePatterns(t *testing.T) {
	l := newLab(t)
	l.root, l.cache = filepath.Join(l.root, "w [x]*"), filepath.Join(filepath.Dir(l.cache), "ca[c]he?")
	l.check(os.MkdirAll(l.root, 0o755))
	l.gitIn(l.root, "init", "-q", "--template=", "-b", "main")
	l.gitIn(l.root, "config", "user.name", "Ada")
	l.gitIn(l.root, "config", "user.email", "ada@example.org")
	l.crashRepo()
	before := l.files(l.root)
	if point := l.killAt("replace", l.root, 4); point == "" || maps.Equal(l.files(l.root), before) {
		t.Fatalf("killed at %q, want it in the middle of a change", point)
	}
	r := l.open(worktree.Options{Session: "next"})
	done, err := r.Recover(t.Context())
	if err != nil || !slices.ContainsFunc(done, func(rec worktree.Recovered) bool { return rec.Action == worktree.RolledBack }) {
		t.Errorf("Recover = %+v, %v, want it rolled back", done, err)
	}
	same(t, "tree", l.files(l.root), before)
	s := l.snapshot(r.Tree())
	l.keep(r, s, "0.1", "why", func(dir string) {
		l.write(dir, "a", "kept\n")
		l.write(dir, ".env", "KEY=1\n")
	})
	list := l.kept(r, "next")
	if len(list) != 1 || list[0].Left == "" {
		t.Fatalf("Kept = %+v, want one with what was left out of it", list)
	}
	if c := l.copy(r, s, "0.2"); os.Getenv(onOverlay) != "" && c.Backend != worktree.Overlay {
		t.Errorf("copy is %s (%s), want layers", c.Backend, c.Why)
	}
	l.close(r)
	if got, err := r.GC(t.Context(), -1<<40); err != nil || len(got.Left) != 1 {
		t.Errorf("GC = %+v, %v, want the folder gone", got, err)
	}
}

// What is said to be kept is on the disk before the copy goes.
func TestWhatIsKeptIsOnTheDisk(t *testing.T) {
	l := newLab(t)
	git, err := exec.LookPath("git")
	l.check(err)
	bin := t.TempDir()
	l.writeMode(bin, "git", "#!/bin/sh\necho \"$@\" >>'"+bin+"/calls'\nexec '"+git+"' \"$@\"\n", 0o755)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) { l.write(dir, "new", "new\n") })))
	l.keep(r, s, "0.2", "why", func(dir string) { l.write(dir, "kept", "kept\n") })
	l.close(r)
	calls, err := os.ReadFile(bin + "/calls")
	l.check(err)
	for _, call := range []string{"mktag", "update-ref refs/skein/s/1/kept/0.2", "update-ref refs/skein/s/1/head", "fast-import"} {
		found := false
		for line := range strings.Lines(string(calls)) {
			if strings.Contains(line, call) {
				found = true
				if !strings.Contains(line, "core.fsync=committed,loose-object,reference") {
					t.Errorf("git %s does not wait for the disk: %s", call, line)
				}
			}
		}
		if !found {
			t.Errorf("no call of git %s", call)
		}
	}
}

// A change of a writer's own writer that stands half applied in its copy is not built upon.
func TestCopyRefusesAHalfAppliedTree(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"a", "b", "c"} {
		l.write(l.root, name, name+"\n")
	}
	l.commit()
	before := l.files(l.root)
	var hidden string
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at != "after replace b" || hidden != "" {
			return nil
		}
		olds, err := filepath.Glob(l.root + "/.git/skein/runs/*/apply-*/old")
		l.check(err)
		hidden = olds[0]
		l.check(os.Rename(hidden, hidden+".hidden"))
		return errors.New("broken disk")
	}})
	child := l.copy(r, l.snapshot(r.Tree()), "0.1")
	s := l.snapshot(child.Tree())
	merged := l.merge(r, s.Commit, l.change(r, s, "0.1.1", func(dir string) {
		for _, name := range []string{"a", "b", "c"} {
			l.write(dir, name, name+" 2\n")
		}
	}))
	other := l.merge(r, s.Commit, l.change(r, s, "0.1.2", func(dir string) { l.write(dir, "d", "d\n") }))
	for _, commit := range []string{merged, merged, other} {
		if _, err := child.Tree().Apply(t.Context(), s.Commit, commit); !errors.Is(err, worktree.ErrHalfApplied) {
			t.Errorf("Apply = %v, want ErrHalfApplied", err)
		}
	}
	l.check(os.Rename(hidden+".hidden", hidden))
	l.apply(child.Tree(), s.Commit, other)
	before["d"] = `false "d\n"`
	same(t, "copy", l.files(child.Root), before)
	l.close(r)
}

// There is no record of what did not happen.
func TestNoRecordOfWhatFailed(t *testing.T) {
	l := newLab(t)
	l.commitOne()
	var recording, failed bool
	r := l.open(worktree.Options{Session: "s", Fault: func(at string) error {
		recording = recording || at == "after git fast-import"
		if recording && at == "before git pack-objects" && !failed {
			failed = true
			return errors.New("disk full")
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	merged := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) { l.write(dir, "new", "new\n") }))
	before := l.files(l.root)
	if _, err := r.Tree().Apply(t.Context(), s.Commit, merged); err == nil || !failed {
		t.Fatalf("Apply = %v, want it to fail at the record", err)
	}
	same(t, "tree", l.files(l.root), before)
	var none *worktree.NoRunError
	if c, err := r.RunDiff(t.Context(), "s"); !errors.As(err, &none) {
		t.Errorf("RunDiff = %+v, %v, want none", c, err)
	}
	l.close(r)
}
