package worktree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// A writer is one of the team, with the files it changes.
type writer struct {
	name  string
	files map[string]string
}

// The team of a run that is killed: three writers, of whom the second conflicts with the
// first.
var team = []writer{
	{"0.1", map[string]string{"a": "first\n", "dir/new": "first\n"}},
	{"0.2", map[string]string{"a": "second\n", "second": "second\n"}},
	{"0.3", map[string]string{"c": "third\n", "dir/b": "third\n", "deep/er/new": "third\n"}},
}

// crashTeam does a run of the team and kills itself at the point whose number CRASH_AT
// is. It prints whose edits are done, and the point, or how many there are.
func crashTeam(ctx context.Context, root string) error {
	at, err := strconv.Atoi(os.Getenv("CRASH_AT"))
	if err != nil {
		return err
	}
	points := 0
	fault := func(point string) error {
		if points++; points == at || point == os.Getenv("CRASH_POINT") {
			fmt.Println("killed", point)
			return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("still alive"))
		}
		return nil
	}
	r, err := worktree.Open(ctx, root, worktree.Options{
		Cache: os.Getenv("CRASH_CACHE"), Session: "dead", Run: "1", Layers: layers(), Box: boxes(), Fault: fault,
	})
	if err != nil {
		return err
	}
	s, err := r.Tree().Snapshot(ctx)
	if err != nil {
		return err
	}
	var copies []*worktree.Copy
	var ends []func()
	for _, w := range team {
		c, err := r.Copy(ctx, s, w.name)
		if err != nil {
			return err
		}
		end, err := attach(ctx, c, os.Getenv("HOME"))
		if err != nil {
			return err
		}
		copies, ends = append(copies, c), append(ends, end)
		for name, text := range w.files {
			at := filepath.Join(c.Root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
				return err
			}
		}
		fmt.Println("edited", w.name)
	}
	var changes []worktree.Change
	for i, c := range copies {
		ends[i]()
		c.Attach("")
		ch, err := c.Collect(ctx, "work\n")
		if err != nil {
			return err
		}
		changes = append(changes, ch)
	}
	onto := s.Commit
	for i, c := range copies {
		merged, err := r.Merge(ctx, onto, changes[i])
		var conflict *worktree.ConflictError
		switch {
		case errors.As(err, &conflict):
			_, err = r.Keep(ctx, changes[i], c.Name, "it conflicts")
		case err == nil:
			_, err = c.ApplyTo(ctx, r.Tree(), onto, merged)
			onto = merged
		}
		if err == nil {
			err = fault("settled " + c.Name)
		}
		if err == nil {
			_, err = c.Remove(ctx)
		}
		if err != nil {
			return err
		}
	}
	_, err = r.Close(ctx)
	fmt.Println("points", points)
	return err
}

func (l *lab) teamRepo() {
	l.write(l.root, "a", "a\n")
	l.write(l.root, "dir/b", "b\n")
	l.write(l.root, "c", "c\n")
	l.commit()
	l.write(l.root, "c", "staged\n")
	l.git("add", "c")
	l.write(l.root, "untracked", "untracked\n")
}

// Killed at any point of a run, the tree is as it was before or after each merge, and
// every change is merged or kept; nothing else is left. Each run of the test tries other
// points, as many in each stretch; `make test-long` tries all.
func TestTeamKilledAnywhere(t *testing.T) {
	l := newLab(t)
	l.teamRepo()
	_, said := l.teamKilledAt(0)
	total, err := strconv.Atoi(said["points"])
	if err != nil || total < 100 {
		t.Fatalf("the run says %v, want at least 100 points", said)
	}
	seed, err := strconv.ParseUint(os.Getenv(seedVar), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("%s=%d", seedVar, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tries := min(total, long(12, total))
	actions := map[string]int{}
	for i := range tries {
		from, to := i*total/tries, (i+1)*total/tries
		at := 1 + from + random.IntN(to-from)
		if i == tries-1 {
			at = total // after the last merge there are few
		}
		teamKilled(t, at, actions)
	}
	t.Logf("killed at %d of %d points; recovered: %v", tries, total, actions)
	const enough = 30 // for one in each of the stretches
	if ends := tries >= enough; ends && (actions["whole tree before"] == 0 || actions["first merged"] == 0 || actions["all merged"] == 0) {
		t.Errorf("ends of runs = %v, want all three", actions)
	}
}

// Killed between the end of a merge, or the keeping of a change, and the removal of the copy.
func TestSettledOnce(t *testing.T) {
	for _, w := range team {
		t.Run(w.name, func(t *testing.T) {
			t.Setenv("CRASH_POINT", "settled "+w.name)
			actions := map[string]int{}
			teamKilled(t, 0, actions)
			if want := map[bool]string{true: "first merged", false: "all merged"}[w.name < "0.3"]; actions[want] != 1 {
				t.Errorf("killed when %s was settled: %v, want %s", w.name, actions, want)
			}
		})
	}
}

// seedVar sets which points are tried, to try those of a run that failed again.
const seedVar = "SKEIN_TEST_SEED"

// teamKilledAt runs the team; it returns whose edits were done, and what else it said.
func (l *lab) teamKilledAt(at int) (edited []string, said map[string]string) {
	l.Helper()
	said = map[string]string{}
	out, _ := l.crashed("team", l.root, at)
	for line := range strings.Lines(out) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "edited" {
			edited = append(edited, rest)
		}
		said[word] = rest
	}
	return edited, said
}

func teamKilled(t *testing.T, at int, actions map[string]int) {
	l := newLab(t)
	l.teamRepo()
	before := l.files(l.root)
	index, err := os.ReadFile(l.root + "/.git/index")
	l.check(err)
	edited, said := l.teamKilledAt(at)
	what := fmt.Sprint(at, " ", said["killed"])
	processesOf(t, l.root, what)

	r := l.open(worktree.Options{Session: "next"})
	done, err := r.Recover(t.Context())
	if err != nil {
		t.Fatalf("%s: Recover = %v, want no error", what, err)
	}
	for _, rec := range done {
		if rec.Action == worktree.Failed {
			t.Errorf("%s: Recover = %+v, want no failure", what, rec)
		}
		actions[rec.Action]++
	}
	merged := map[string]bool{}
	now := l.files(l.root)
	first, all := maps.Clone(before), maps.Clone(before)
	for i, w := range team {
		for name, text := range w.files {
			if i == 0 {
				first[name] = fmt.Sprintf("false %q", text)
			}
			if i != 1 {
				all[name] = fmt.Sprintf("false %q", text)
			}
		}
	}
	switch {
	case maps.Equal(now, before):
		actions["whole tree before"]++
	case maps.Equal(now, first):
		actions["first merged"]++
		merged["0.1"] = true
	default:
		actions["all merged"]++
		merged["0.1"], merged["0.3"] = true, true
		same(t, what+": tree", now, all)
	}
	// What is told of the run is what it did.
	if _, err := r.RunDiff(t.Context(), "dead"); errors.As(err, new(*worktree.NoRunError)) == merged["0.1"] {
		t.Errorf("%s: RunDiff = %v, though %v are merged", what, err, merged)
	}
	kept := map[string]worktree.KeptChange{}
	for _, k := range l.kept(r, "dead") {
		kept[k.Name] = k
	}
	for _, w := range team {
		k, ok := kept[w.name]
		switch {
		case !ok && !merged[w.name] && slices.Contains(edited, w.name):
			t.Errorf("%s: the change of %s is neither merged nor kept", what, w.name)
		case ok && merged[w.name]:
			t.Errorf("%s: the change of %s is merged, and kept as well", what, w.name)
		case ok && len(k.Files) != len(w.files):
			t.Errorf("%s: of the change of %s is kept %v, want %d files", what, w.name, k.Files, len(w.files))
		}
	}
	for name := range kept {
		if !slices.ContainsFunc(team, func(w writer) bool { return w.name == name }) {
			t.Errorf("%s: a change is kept as %s, too", what, name)
		}
	}
	if after, err := os.ReadFile(l.root + "/.git/index"); err != nil || !bytes.Equal(after, index) {
		t.Errorf("%s: the user's index changed", what)
	}
	l.clean(what, len(kept) > 0)
	if out := l.git("worktree", "list"); strings.Contains(out, "\n") {
		t.Errorf("%s: worktrees = %s, want only the user's", what, out)
	}
	// The next run works.
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "next", "next\n") })
	l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
	l.close(r)
	l.git("fsck", "--strict")
}

// processesOf reports processes that a killed run left.
func processesOf(t *testing.T, root, what string) {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range environs {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte("CRASH_ROOT="+root+"\x00")) {
			t.Errorf("%s: %s still runs", what, name)
		}
	}
}
