package orchestrator_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
	"skein/tools/gate"
)

// A season is a random run: a tree of agents, and what comes over it.
type season struct {
	root     *grove
	slots    int
	budget   int64         // 0: none
	timeout  time.Duration // of the run; 0: none
	cancelAt time.Duration // 0: never
	endAt    time.Duration // 0: never; when a child is ended
	ends     string        // that child; there may be none
}

// settled reports whether each agent comes to the same end every time: nothing comes over it at a
// moment that depends on who was quicker, or had a slot before others.
func (s season) settled() bool {
	return s.budget == 0 && s.timeout == 0 && (s.cancelAt == 0 && s.endAt == 0 || s.slots == manySlots)
}

// manySlots is more than there are agents.
const manySlots = 100

// kinds are the calls that agents make, the more frequent ones more often.
var (
	mostlyReading = []string{"look", "look", "edit", "own file", "child", "child", "writer"}
	mostlyWriting = []string{"edit", "edit", "own file", "child", "writer", "writer", "writer"}
)

// meeting is two writers who change the same line.
func meeting() reply {
	writer := func(word string) ask { return ask{writes: true, child: &grove{turns: []reply{{edit(word)}}}} }
	return reply{writer("one"), writer("two")}
}

// edit puts a word into the file that all writers change.
func edit(word string) ask {
	return ask{tool: "search_replace", args: fmt.Sprintf(`{"path":"a.txt","search":"a","replace":"a %s"}`, word)}
}

// seasons draws runs with at most so many agents, down to depth 3, and those that the first one
// asks for first.
func seasons(agents int, kinds []string, first ...ask) *rapid.Generator[season] {
	return rapid.Custom(func(t *rapid.T) season {
		s := season{slots: rapid.SampledFrom([]int{1, 2, 3, 4, manySlots}).Draw(t, "slots")}
		s.root, _ = drawGrove(t, kinds, 0, agents, "0")
		s.root.end = "answers"
		s.root.turns[0] = append(slices.Clone(first), s.root.turns[0]...)
		// Between the seconds that models think, so that it comes over the same state each time.
		moment := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(1, 20).Draw(t, name))*time.Second - time.Second/2
		}
		switch over := rapid.IntRange(0, 6).Draw(t, "comes over it"); over {
		case 0, 1, 2:
			if over > 0 {
				s.timeout = time.Duration(rapid.IntRange(1, 40).Draw(t, "timeout")) * time.Second
			}
			if over < 2 {
				s.budget = rapid.Int64Range(2000, 20_000).Draw(t, "budget") // the first reply fits
			}
		case 3:
			s.cancelAt = moment("cancelled after")
		case 4:
			s.endAt, s.ends = moment("ended after"), rapid.SampledFrom([]string{"0.1", "0.2", "0.1.1"}).Draw(t, "ended")
		}
		return s
	})
}

// drawGrove draws an agent with all below it, so many at most, and says how many they are. An
// agent leaves to its second child half of what it may have, and so on: siblings are to meet.
func drawGrove(t *rapid.T, kinds []string, depth, most int, name string) (g *grove, agents int) {
	g = &grove{
		thinks: time.Duration(rapid.IntRange(0, 3).Draw(t, "thinks")) * time.Second,
		end:    rapid.SampledFrom([]string{"answers", "answers", "answers", "answers", "fails", "panics", "hangs"}).Draw(t, "ends"),
	}
	agents = 1
	born, least := 0, max(0, 1-depth)
	for turn := range rapid.IntRange(least, 2).Draw(t, "turns") {
		var r reply
		for i := range rapid.IntRange(1+4*least, 8).Draw(t, "calls") {
			kind := rapid.SampledFrom(kinds).Draw(t, "call")
			switch {
			case (kind == "child" || kind == "writer") && depth < 3 && agents < most:
				born++
				child, n := drawGrove(t, kinds, depth+1, (most-agents+1)/2, fmt.Sprintf("%s.%d", name, born))
				agents += n
				r = append(r, ask{writes: kind == "writer", child: child})
			case kind == "edit":
				r = append(r, edit(name))
			case kind == "own file":
				r = append(r, ask{tool: "write_file", args: fmt.Sprintf(`{"path":"of-%s-%d-%d.txt","content":"x\n"}`, name, turn, i)})
			default:
				r = append(r, ask{tool: "read_file", args: `{"path":"a.txt"}`})
			}
		}
		g.turns = append(g.turns, r)
	}
	return g, agents
}

// faulter takes complaints.
type faulter interface{ Errorf(string, ...any) }

// Whatever the tree: it ends, nothing of it is left running, reports come in request order,
// the budget is passed by at most one exchange for each agent at work, and the same replies
// give the same bytes. Time is virtual, and that nobody waits forever is what it finds out.
func TestRandomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := seasons(24, mostlyReading).Draw(rt, "season")
		liveTwice(t, rt, s, nil)
	})
}

// The same with copies of a repository. Each begins with a conflict, which is resolved unless
// something comes over it.
func TestRandomTreesOfWriters(t *testing.T) {
	some := 4
	if os.Getenv("SKEIN_LONG") != "" {
		some = 100
	}
	for seed := range some {
		s := seasons(7, mostlyWriting, meeting()...).Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			liveTwice(t, t, s, func(r *rig) { r.repo(map[string]string{"a.txt": "a\n"}) })
		})
	}
}

// The same with real time, copies and boxes: seconds become hundredths.
func TestRandomTreesForReal(t *testing.T) {
	needBox(t)
	some := 2
	if os.Getenv("SKEIN_LONG") != "" {
		some = 50
	}
	for seed := range some {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := seasons(8, mostlyWriting, meeting()...).Example(seed)
			f := plant(s.root)
			for _, g := range f.groves {
				g.thinks /= 100
				g.turns = append(g.turns, reply{{tool: "bash", args: `{"command":"cat a.txt"}`}})
			}
			ctx := t.Context()
			if s.cancelAt > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, s.cancelAt/20)
				defer cancel()
			}
			r, control := newRig(t, "- say: nobody asks").repo(map[string]string{"a.txt": "a\n"}), &orchestrator.Control{}
			defer s.endLater(control, 20)()
			r.runContext(ctx, func(o *orchestrator.Options) {
				o.Control = control
				o.Client, o.Jobs, o.MaxDepth, o.Budget, o.ChildTime = f, s.slots, 3, s.budget, 3*time.Second
			})
			checkSeason(t, r, f, s)
			if left, _ := filepath.Glob(r.cache + "/copies/*/*"); len(left) > 0 {
				t.Errorf("copies are left: %v", left)
			}
		})
	}
}

// liveTwice checks that a season gives the same bytes again.
func liveTwice(t *testing.T, c faulter, s season, prepare func(*rig)) {
	t.Helper()
	first := liveThrough(t, c, s, prepare)
	if !s.settled() {
		return
	}
	if second := liveThrough(t, c, s, prepare); first != second {
		c.Errorf("the same replies gave other bytes: %s", difference(first, second))
	}
}

// endLater ends a child of a season when its time has come. Stop must be called.
func (s season) endLater(c *orchestrator.Control, faster time.Duration) (stop func() bool) {
	if s.endAt == 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(s.endAt/faster, func() { c.End(s.ends) }).Stop
}

// liveThrough runs a season in virtual time and returns what must be the same each time.
func liveThrough(t *testing.T, c faulter, s season, prepare func(*rig)) (trace string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "season")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: dir + "/work", cache: dir + "/cache"}
		if err := os.Mkdir(r.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if prepare != nil {
			prepare(r)
		} else {
			r.write(map[string]string{"a.txt": "a\n"})
		}
		ctx := t.Context()
		if s.cancelAt > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.cancelAt)
			defer cancel()
		}
		f, began, control := plant(s.root), time.Now(), &orchestrator.Control{}
		defer s.endLater(control, 1)()
		r.out, err = orchestrator.Run(ctx, orchestrator.Options{
			Control: control,
			Dir:     r.dir, Client: f, Access: gate.Auto, Boxes: orchestrator.Boxes{NoSandbox: true}, Cache: r.cache, Session: "s1",
			Limits: orchestrator.Limits{Jobs: s.slots, MaxDepth: 3, MaxChildren: 100, Budget: s.budget, Timeout: s.timeout, ChildTime: time.Minute},
			Now:    func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) },
			Watch:  func(e journal.Event) { r.events = append(r.events, e) },
		}, "go")
		if err != nil {
			c.Errorf("Run = %v", err)
		}
		if took := time.Since(began); s.timeout > 0 && took > s.timeout {
			c.Errorf("the run took %v of %v", took, s.timeout)
		}
		checkSeason(c, r, f, s)
		settled, _, _ := of[journal.Settled](r)
		var reports strings.Builder
		for _, parent := range slices.Sorted(maps.Keys(byParent(settled))) {
			for _, s := range byParent(settled)[parent] {
				reports.WriteString(s.Report + "\n")
			}
		}
		// Where nothing shows a copy at its parent's path its own is named.
		trace = ofCopy.ReplaceAllString(strings.ReplaceAll(f.bodies(), dir, ""), "copies/") + reports.String() + r.tree()
	})
	return trace
}

var ofCopy = regexp.MustCompile(`copies/[^/]*@`)

// difference shows the first place where two texts differ.
func difference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-200):min(len(s), i+200)] }
	return fmt.Sprintf("%q\nand %q", around(a), around(b))
}

func byParent(settled []*journal.Settled) map[string][]*journal.Settled {
	m := map[string][]*journal.Settled{}
	for _, s := range settled {
		parent := parentOf(s.Child)
		m[parent] = append(m[parent], s)
	}
	return m
}

func parentOf(ordinal string) string { return ordinal[:strings.LastIndexByte(ordinal, '.')] }

// mostAlive is how many agents there were at once, with those that waited for their children:
// each of them may have a closing turn.
func mostAlive(r *rig) (most int) {
	n := 0
	for _, e := range r.events {
		switch e.Kind {
		case "agent-started":
			n++
		case "agent-ended":
			n--
		}
		most = max(most, n)
	}
	return most
}

// checkSeason looks at what a run left.
func checkSeason(c faulter, r *rig, f *forest, s season) {
	if s.budget == 0 && s.timeout == 0 && r.out.Stop != agent.Completed && (s.cancelAt == 0 || r.out.Stop != agent.Cancelled) {
		c.Errorf("the run ended as %s (%s)", r.out.Stop, r.out.Cause)
	}
	if f.busy != 0 || f.peak > s.slots {
		c.Errorf("%d exchanges are under way, %d were at most, want none and at most %d", f.busy, f.peak, s.slots)
	}
	alive := mostAlive(r)
	if over := f.spent - s.budget - int64(alive)*f.largest; s.budget > 0 && over > 0 {
		c.Errorf("%d tokens were spent of %d: %d more than a reply for each of %d agents", f.spent, s.budget, over, alive)
	}
	settled, _, _ := of[journal.Settled](r)
	// Resolvers are no part of the reply: they report to whoever settles it.
	_, queued, _ := of[journal.AgentQueued](r)
	resolved, _, _ := of[journal.Resolved](r)
	queued = slices.DeleteFunc(queued, func(name string) bool {
		return slices.ContainsFunc(resolved, func(r *journal.Resolved) bool { return r.Resolver == name })
	})
	if len(queued) != len(settled) {
		c.Errorf("%d children were queued and %d settled: %v", len(queued), len(settled), queued)
	}
	for parent, list := range byParent(settled) {
		var reported []string
		for _, s := range list {
			reported = append(reported, s.Child)
		}
		asked := slices.DeleteFunc(slices.Clone(queued), func(name string) bool { return parentOf(name) != parent })
		if !slices.Equal(reported, asked) {
			c.Errorf("%s asked for %v and has reports of %v", parent, asked, reported)
		}
	}
	wanted, by, _ := of[journal.Call](r)
	asked := map[string][]string{}
	for i, call := range wanted {
		asked[by[i]] = append(asked[by[i]], call.ID)
	}
	results, by, _ := of[journal.Result](r)
	got := map[string][]string{}
	for i, res := range results {
		got[by[i]] = append(got[by[i]], res.ID)
	}
	for name, ids := range asked {
		if !slices.Equal(ids, got[name]) {
			c.Errorf("%s asked for %v and got results of %v", name, ids, got[name])
		}
	}
}
