package worktree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/worktree"
)

// keep makes a change and keeps it.
func (l *lab) keep(r *worktree.Repo, s worktree.Snapshot, name, why string, edit func(dir string)) string {
	l.Helper()
	ref, err := r.Keep(l.Context(), l.change(r, s, name, edit), name, why)
	l.check(err)
	return ref
}

func (l *lab) kept(r *worktree.Repo, run string) []worktree.KeptChange {
	l.Helper()
	list, err := r.Kept(l.Context(), run)
	l.check(err)
	return list
}

func TestKeptChanges(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	if list := l.kept(l.open(worktree.Options{}), ""); len(list) > 0 {
		t.Errorf("Kept without a store = %+v, want none", list)
	}
	start := time.Now().Truncate(time.Second)
	one := l.open(worktree.Options{Session: "one"})
	s := l.snapshot(one.Tree())
	l.keep(one, s, "0.10", "ten", func(dir string) { l.write(dir, "ten", "1\n2\n") })
	l.keep(one, s, "0.2", "conflict in a (content),\nb (mode)", func(dir string) {
		l.write(dir, "a", "two\n")
		l.write(dir, ".env", "KEY=1\n")
	})
	l.close(one)

	r := l.open(worktree.Options{})
	list := l.kept(r, "")
	for _, run := range []string{"one", "one/1"} {
		if got := l.kept(r, run); len(got) != 2 {
			t.Errorf("Kept(%q) = %+v, want both", run, got)
		}
	}
	if got := l.kept(r, "on"); len(got) > 0 {
		t.Errorf("Kept(on) = %+v, want none: it is the id of no session", got)
	}
	var names []string
	for _, k := range list {
		names = append(names, k.Name)
		if k.When.Before(start) || k.When.After(time.Now()) {
			t.Errorf("%s was kept %v, want now", k.Name, k.When)
		}
	}
	if want := []string{"0.2", "0.10"}; !slices.Equal(names, want) {
		t.Fatalf("Kept = %q, want %q", names, want)
	}
	k := list[0]
	if k.Session != "one" || k.Run != "1" || k.Base != s.Commit || k.Title != "work of 0.2" || k.Why != "conflict in a (content), b (mode)" {
		t.Errorf("Kept = %+v, want what was kept", k)
	}
	if want := (worktree.FileStat{Path: "a", Status: "M", Added: 1, Removed: 1}); !slices.Equal(k.Files, []worktree.FileStat{want}) {
		t.Errorf("files = %+v, want %+v", k.Files, want)
	}
	if text, err := os.ReadFile(filepath.Join(k.Left, ".env")); err != nil || string(text) != "KEY=1\n" {
		t.Errorf("left out = %q, %v, want the file", text, err)
	}
	if diff, err := r.Diff(t.Context(), k.Base, k.Commit); err != nil || !strings.Contains(diff, "+two") {
		t.Errorf("Diff = %q, %v, want the change", diff, err)
	}
}

func TestKeepingTwiceLosesNothing(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "a", "one\n") })
	for range 2 {
		_, err := r.Keep(t.Context(), ch, "0.1", "first")
		l.check(err)
	}
	l.keep(r, s, "0.1", "second", func(dir string) { l.write(dir, "a", "two\n") })
	var got []string
	for _, k := range l.kept(r, "s") {
		got = append(got, k.Name+" "+k.Why)
	}
	if want := []string{"0.1 first", "0.1-2 second"}; !slices.Equal(got, want) {
		t.Errorf("Kept = %q, want %q", got, want)
	}
	l.close(r)
}

func TestMergeKept(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "1\n2\n3\n4\n5\n6\n7\n")
	l.commit()
	one := l.open(worktree.Options{Session: "one"})
	s := l.snapshot(one.Tree())
	l.keep(one, s, "0.1", "why", func(dir string) { l.write(dir, "a", "1\n2\n3\n4\n5\n6\nseven\n") })
	l.keep(one, s, "0.2", "why", func(dir string) { l.write(dir, "a", "uno\n2\n3\n4\n5\n6\n7\n") })
	l.close(one)
	// The user went on since.
	l.write(l.root, "a", "one\n2\n3\n4\n5\n6\n7\n")
	l.commit()
	l.write(l.root, "mine", "mine\n")

	r := l.open(worktree.Options{Session: "merging"})
	list := l.kept(r, "one")
	index := l.users()
	a, err := r.MergeKept(t.Context(), list[0])
	if err != nil || len(a.Files) != 1 {
		t.Fatalf("MergeKept = %+v, %v, want one file", a, err)
	}
	want := map[string]string{"a": `false "one\n2\n3\n4\n5\n6\nseven\n"`, "mine": `false "mine\n"`}
	same(t, "tree", l.files(l.root), want)
	_, err = r.MergeKept(t.Context(), list[1])
	if got := conflicts(t, err); !slices.Equal(got, []string{"a: content"}) {
		t.Errorf("MergeKept conflicts = %q, want a: content", got)
	}
	same(t, "tree", l.files(l.root), want)
	if list = l.kept(r, ""); len(list) != 1 || list[0].Name != "0.2" {
		t.Errorf("Kept = %+v, want only the one that conflicts", list)
	}
	if now := l.users(); strings.ReplaceAll(now, " M a\x00", "") == "" || strings.Split(now, "\n")[0] != strings.Split(index, "\n")[0] {
		t.Error("the index changed")
	}
	// The change counts to the run it is of.
	c, err := r.RunDiff(t.Context(), "")
	if err != nil || c.Session != "one" {
		t.Errorf("RunDiff = %+v, %v, want run one", c, err)
	}
	l.check(r.Drop(t.Context(), list[0]))
	l.close(r)
	if refs := l.git("for-each-ref", "refs/skein"); refs != "" {
		t.Errorf("refs of the user's = %q, want none once nothing is kept", refs)
	}
}

func TestDropRefusesOtherRefs(t *testing.T) {
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	l.snapshot(r.Tree())
	for _, k := range []worktree.KeptChange{
		{Session: "s", Run: "1", Name: "0.1", Ref: "refs/skein/s/1/base/1"},
		{Session: "..", Run: "1", Name: "0.1", Ref: "refs/skein/../1/kept/0.1"},
		{},
	} {
		if err := r.Drop(t.Context(), k); err == nil {
			t.Errorf("Drop(%+v) = nil, want an error", k)
		}
		if _, err := r.MergeKept(t.Context(), k); err == nil {
			t.Errorf("MergeKept(%+v) = nil, want an error", k)
		}
	}
	l.close(r)
}

func (l *lab) commitOne() {
	l.Helper()
	l.write(l.root, "a", "a\n")
	l.commit()
}

func TestRunDiff(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"a", "b\n\"\\\xff", "dir/c", "gone"} {
		l.write(l.root, name, "old text of it\n")
	}
	l.commit()
	l.write(l.root, "a", "the user's\n")
	r := l.open(worktree.Options{Session: "s"})
	for run, want := range map[string]string{"": "no run has changed anything in this tree", "s": "run s has changed nothing in this tree"} {
		if _, err := r.RunDiff(t.Context(), run); !errors.As(err, new(*worktree.NoRunError)) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("RunDiff(%q) of nothing = %v, want a NoRunError: %s", run, err, want)
		}
	}
	s := l.snapshot(r.Tree())
	one := l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "a", "one\n")
		l.write(dir, "b\n\"\\\xff", "one\n")
		l.write(dir, "passing", "one\n")
	})
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, one))
	l.write(l.root, "other", "the user's\n")
	s = l.snapshot(r.Tree())
	two := l.change(r, s, "0.2", func(dir string) {
		l.write(dir, "a", "two\n")
		l.remove(dir, "gone", "passing")
		l.writeMode(dir, "dir/c", "old text of it\n", 0o755)
	})
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, two))
	l.close(r)
	l.git("commit", "-q", "--amend", "-m", "other", "-a")
	l.git("reflog", "expire", "--expire=now", "--all")
	l.git("gc", "-q", "--prune=now")

	r = l.open(worktree.Options{})
	for _, run := range []string{"", "s", "s/1"} {
		c, err := r.RunDiff(t.Context(), run)
		if err != nil {
			t.Fatalf("RunDiff(%q) = %v, want no error", run, err)
		}
		var got []string
		for _, f := range c.Files {
			got = append(got, fmt.Sprintf("%s %q", f.Status, f.Path))
		}
		want := []string{`M "a"`, `M "b\n\"\\\xff"`, `M "dir/c"`, `D "gone"`}
		if !slices.Equal(got, want) {
			t.Errorf("RunDiff(%q) = %q, want %q", run, got, want)
		}
		diff, err := r.Diff(t.Context(), c.From, c.To)
		if err != nil || !strings.Contains(diff, "-the user's\n+two") || !strings.Contains(diff, "new mode 100755") {
			t.Errorf("Diff = %q, %v, want it from before the run to after it", diff, err)
		}
	}
	if refs := l.git("for-each-ref", "refs/skein"); refs != "" {
		t.Errorf("refs of the user's = %q, want none", refs)
	}
}

func TestGC(t *testing.T) {
	anyWay(t)
	l := newLab(t)
	l.commitOne()
	for _, session := range []string{"one", "two"} {
		r := l.open(worktree.Options{Session: session})
		for i := range 6 {
			s := l.snapshot(r.Tree())
			ch := l.change(r, s, "0.1", func(dir string) {
				l.write(dir, "new", fmt.Sprintln(session, i))
				l.write(dir, ".env", "KEY=1\n")
			})
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
		}
		s := l.snapshot(r.Tree())
		l.keep(r, s, "0.2", "why", func(dir string) { l.write(dir, "kept", session) })
		if _, err := r.GC(t.Context(), time.Hour); err != nil { // beside a run that lives
			t.Errorf("GC = %v, want no error", err)
		}
		l.close(r)
		l.write(l.root, "a", session)
		l.commit()
	}
	packs := func() int {
		found, err := filepath.Glob(l.root + "/.git/skein/objects/pack/*.pack")
		l.check(err)
		return len(found)
	}
	before := packs()
	r := l.open(worktree.Options{})
	got, err := r.GC(t.Context(), time.Hour)
	if err != nil || len(got.Dropped) > 0 || got.Records > 0 || len(got.Left) > 0 || got.Packs != before {
		t.Errorf("GC = %+v, %v, want only %d packs put together", got, err, before)
	}
	if now := packs(); now > 3 {
		t.Errorf("%d packs of %d are left, want one for each run and one", now, before)
	}
	// All that is kept is whole, whatever the user's repository loses.
	l.git("reset", "-q", "--hard", "HEAD~1")
	prune := func() {
		l.git("reflog", "expire", "--expire=now", "--all")
		l.git("gc", "-q", "--prune=now")
	}
	prune()
	list := l.kept(r, "")
	if len(list) != 2 {
		t.Fatalf("Kept = %+v, want 2", list)
	}
	l.check(r.Drop(t.Context(), list[0]))
	prune()
	for _, run := range []string{"one", "two"} {
		c, err := r.RunDiff(t.Context(), run)
		l.check(err)
		if diff, err := r.Diff(t.Context(), c.From, c.To); err != nil || !strings.Contains(diff, "+"+run+" 5") {
			t.Errorf("diff of run %s = %q, %v, want its last change", run, diff, err)
		}
	}
	l.gitIn(l.root+"/.git/skein", "fsck", "--strict", "--connectivity-only")
	if _, err := r.MergeKept(t.Context(), list[1]); err != nil {
		t.Errorf("MergeKept = %v, want no error", err)
	}
	l.close(r)

	// Everything is old now, and an interrupted run left its ref.
	l.git("update-ref", "refs/skein/gone/1/head", "HEAD")
	r = l.open(worktree.Options{})
	if got, err = r.GC(t.Context(), -time.Hour); err != nil || got.Records != 13 || len(got.Left) != 12 {
		t.Errorf("GC = %+v, %v, want 13 records and 12 folders gone", got, err)
	}
	if refs := l.git("for-each-ref", "refs/skein") + l.gitIn(l.root+"/.git/skein", "for-each-ref"); refs != "" {
		t.Errorf("refs left = %q, want none", refs)
	}
}

// multiplyPacks makes so many packs of those of a store that they are put together.
func (l *lab) multiplyPacks(store string) {
	l.Helper()
	packs, err := filepath.Glob(store + "/objects/pack/*.pack")
	l.check(err)
	if len(packs) == 0 {
		l.Fatal("no packs")
	}
	for i := range 60 {
		for _, ending := range []string{".pack", ".idx"} {
			l.check(os.Link(strings.TrimSuffix(packs[0], ".pack")+ending, fmt.Sprintf("%s/objects/pack/pack-%040x%s", store, i, ending)))
		}
	}
}

// Objects in no pack are somebody's who has no lease, unless they are old.
func TestGCLeavesNewObjects(t *testing.T) {
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{Session: "s"})
	s := l.snapshot(r.Tree())
	l.keep(r, s, "0.1", "why", func(dir string) { l.write(dir, "one", "1\n") })
	l.close(r)
	store := l.root + "/.git/skein"
	loose, halves := map[string]string{}, []string(nil)
	for _, name := range []string{"new", "old"} {
		l.write(l.root, "x", name)
		id := l.gitIn(store, "hash-object", "-w", l.root+"/x")
		loose[name] = store + "/objects/" + id[:2] + "/" + id[2:]
	}
	past := time.Now().Add(-2 * time.Hour)
	l.check(os.Chtimes(loose["old"], past, past))
	// Of a merge that was killed, and of git's where the disk was full.
	for _, half := range []string{"pack/pack-1.idx-new-2", "pack/tmp_pack_x", filepath.Base(filepath.Dir(loose["new"])) + "/tmp_obj_x"} {
		half = store + "/objects/" + half
		l.write(filepath.Dir(half), filepath.Base(half), "")
		young := half + "-young"
		l.write(filepath.Dir(young), filepath.Base(young), "")
		l.check(os.Chtimes(half, past, past))
		halves = append(halves, half)
	}
	if got, err := r.GC(t.Context(), time.Hour); err != nil || got.Packs != 0 {
		t.Errorf("GC = %+v, %v, want too few packs to put them together", got, err)
	}
	for _, half := range halves {
		if _, err := os.Lstat(half); err == nil {
			t.Errorf("%s is still there", half)
		}
		if _, err := os.Lstat(half + "-young"); err != nil {
			t.Errorf("what somebody may write right now: %v, want it there", err)
		}
	}
	l.multiplyPacks(store)
	if got, err := r.GC(t.Context(), time.Hour); err != nil || got.Packs == 0 {
		t.Errorf("GC = %+v, %v, want the packs put together", got, err)
	}
	if _, err := os.Lstat(loose["new"]); err != nil {
		t.Errorf("an object that was just made: %v, want it there", err)
	}
	if _, err := os.Lstat(loose["old"]); err == nil {
		t.Error("an object that nobody needs is still there")
	}
	l.gitIn(store, "fsck", "--strict", "--connectivity-only")
}

// A ref that a power cut or a broken disk took the object of hides no other, and stops
// nothing from growing old.
func TestOneBrokenRefHidesNothing(t *testing.T) {
	for _, how := range []string{"its tag is missing", "its tag is empty", "its commit is missing", "it is on no tag", "a record is missing"} {
		t.Run(how, func(t *testing.T) {
			l := newLab(t)
			l.commitOne()
			r := l.open(worktree.Options{Session: "s"})
			s := l.snapshot(r.Tree())
			store := l.root + "/.git/skein"
			ch := l.change(r, s, "0.9", func(dir string) { l.write(dir, "merged", "x") })
			l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
			whole := l.keep(r, s, "0.1", "why", func(dir string) { l.write(dir, "one", "1\n") })
			broken := l.keep(r, s, "0.2", "why", func(dir string) { l.write(dir, "two", "2\n") })
			l.close(r)
			bad, records := 1, 0
			switch how {
			case "its tag is missing", "its tag is empty":
				tag := l.gitIn(store, "rev-parse", broken)
				file := store + "/objects/" + tag[:2] + "/" + tag[2:]
				l.check(os.Remove(file))
				if how == "its tag is empty" {
					l.check(os.WriteFile(file, nil, 0o400))
				}
			case "its commit is missing":
				tag := "object " + strings.Repeat("1", 40) + "\ntype commit\ntag kept\ntagger skein <skein@localhost> 1 +0000\n\nwhy\n"
				l.write(l.root, "../tag", tag)
				id := l.gitIn(store, "hash-object", "-t", "tag", "-w", "--literally", l.root+"/../tag")
				l.remove(l.root, "../tag")
				l.write(store, broken, id+"\n")
			case "it is on no tag":
				l.write(store, broken, s.Commit+"\n")
			default:
				bad, records = 0, 1
				l.write(store, "refs/skein/s/1/applied/12345", strings.Repeat("1", 40)+"\n")
			}

			r = l.open(worktree.Options{Session: "next"})
			var good worktree.KeptChange
			var lost []worktree.KeptChange
			for _, k := range l.kept(r, "") {
				switch {
				case k.Err != nil:
					lost = append(lost, k)
				case k.Name == "0.1":
					good = k
				}
			}
			if good.Ref != whole || len(good.Files) != 1 {
				t.Errorf("Kept = %+v, want %s whole", good, whole)
			}
			if len(lost) != bad || bad == 1 && (lost[0].Ref != broken || lost[0].Name != "0.2" || !strings.Contains(lost[0].Err.Error(), broken)) {
				t.Errorf("Kept has %+v, want that of %s nothing can be read", lost, broken)
			}
			if _, err := r.RunDiff(t.Context(), "s"); err != nil {
				t.Errorf("RunDiff = %v, want what is on whole records", err)
			}
			l.multiplyPacks(store)
			got, err := r.GC(t.Context(), -time.Hour)
			if err != nil || got.Packs > 0 != (bad == 0 || how == "it is on no tag") || len(got.Dropped) != 2-bad || got.Dropped[len(got.Dropped)-1].Commit == "" || got.Records != 1+records {
				t.Errorf("GC = %+v, %v, want all but the broken one gone, and no object while there is one", got, err)
			}
			for _, k := range lost {
				if _, err := r.MergeKept(t.Context(), k); !errors.Is(err, k.Err) {
					t.Errorf("MergeKept = %v, want %v", err, k.Err)
				}
				if err := r.Drop(t.Context(), k); err != nil {
					t.Errorf("Drop = %v, want no error", err)
				}
			}
			if left := l.kept(r, ""); len(left) > 0 {
				t.Errorf("Kept = %+v, want none", left)
			}
			l.close(r)
		})
	}
}
