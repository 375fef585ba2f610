package orchestrator_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
	"skein/tools/gate"
)

const threeWriters = `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "first", title: "one", access: write}
    - delegate_task: {task: "second", title: "two", access: write}
    - delegate_task: {task: "third", title: "three", access: write}
- when: {agent: "0.1", turn: 1}
  latency: %s
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TOP\n"}}
- when: {agent: "0.2", turn: 1}
  latency: %s
  call: {write_file: {path: b.txt, content: "new\n"}}
- when: {agent: "0.3", turn: 1}
  latency: %s
  call: {search_replace: {path: a.txt, search: "bottom\n", replace: "BOTTOM\n"}}
- say: done
`

var threeQuickWriters = fmt.Sprintf(threeWriters, "0ms", "0ms", "0ms")

var abc = map[string]string{"a.txt": "top\n1\n2\n3\n4\n5\n6\n7\n8\n9\nbottom\n", "c.txt": "c\n"}

// Same replies, same bytes: what the parent sends, the order of reports and merges and the
// final tree do not depend on who finishes first.
func TestSameBytesWhateverFinishesFirst(t *testing.T) {
	needBox(t)
	type trace struct{ bodies, settled, tree string }
	var want trace
	dir := filepath.Join(t.TempDir(), "work")
	for _, takes := range [][3]int{{0, 30, 60}, {0, 60, 30}, {30, 0, 60}, {30, 60, 0}, {60, 0, 30}, {60, 30, 0}} {
		ms := func(i int) string { return fmt.Sprintf("%dms", takes[i]) }
		r := newRig(t, fmt.Sprintf(threeWriters, ms(0), ms(1), ms(2)))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		r.dir = dir
		r.repo(abc)
		r.write(map[string]string{"c.txt": "uncommitted\n", "d.txt": "untracked\n"})
		clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		out := r.run(func(o *orchestrator.Options) { o.Now = func() time.Time { return clock } })
		if out.Stop != agent.Completed {
			t.Fatalf("%v: stopped as %s (%s)", takes, out.Stop, out.Cause)
		}
		var got trace
		got.bodies = string(bytes.Join(r.bodies("0"), []byte("\n")))
		settled, _, _ := of[journal.Settled](r)
		for _, s := range settled {
			got.settled += fmt.Sprintf("%+v\n", *s)
		}
		got.tree = r.tree()
		if want == (trace{}) {
			want = got
			if len(settled) != 3 || settled[0].Change != delegate.Merged || settled[1].Change != delegate.Merged || settled[2].Change != delegate.Merged {
				t.Fatalf("settled %s, want three merges", got.settled)
			}
			if text := r.read("a.txt"); !strings.HasPrefix(text, "TOP\n") || !strings.HasSuffix(text, "BOTTOM\n") {
				t.Fatalf("a.txt = %q, want both edits", text)
			}
			continue
		}
		if got != want {
			t.Fatalf("%v differs:\n%s\n%s\n%s\nfirst was\n%s\n%s\n%s", takes, got.bodies, got.settled, got.tree, want.bodies, want.settled, want.tree)
		}
	}
}

func TestFullChildHitsItsParentsCache(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {read_file: {path: a.txt}}
- when: {agent: "0", turn: 2}
  call: {delegate_task: {task: "look at c.txt"}}
- when: {agent: "0.1", turn: 1}
  call: {read_file: {path: c.txt}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) { o.Mode = delegate.Full })
	var parent, child int64 = -1, -1
	for _, q := range r.asked {
		if q.Agent == "0" && q.Turn == 2 {
			parent = q.Input
		}
		if q.Agent == "0.1" && q.Turn == 1 {
			child = q.Hit
		}
	}
	if want := parent / 64 * 64; child != want || parent < 64 {
		t.Errorf("first request of the child hit %d tokens, want %d: its parent's last request of %d, rounded down to 64", child, want, parent)
	}
	before, first := r.bodies("0")[1], r.bodies("0.1")[0]
	prefix, _, _ := bytes.Cut(before, []byte(`],"tools"`))
	if !bytes.HasPrefix(first, prefix) {
		t.Errorf("the child's first request does not begin with its parent's last one")
	}
}

func TestEachRequestBeginsWithTheOneBefore(t *testing.T) {
	r := newRig(t, `
- when: {turn: 1}
  calls: [{read_file: {path: a.txt}}, {read_file: {path: "<none> & \"x\""}}]
- when: {turn: 2}
  call: {no_such_tool: {}}
- when: {turn: 3}
  call_raw: {name: read_file, arguments: "{not json"}
- say: done
`).repo(abc)
	r.run(nil)
	bodies := r.bodies("0")
	if len(bodies) != 4 {
		t.Fatalf("asked %d times, want 4", len(bodies))
	}
	for i := 1; i < len(bodies); i++ {
		prefix, _, _ := bytes.Cut(bodies[i-1], []byte(`],"tools"`))
		if !bytes.HasPrefix(bodies[i], prefix) {
			t.Errorf("request %d does not begin with the messages of request %d", i+1, i)
		}
	}
}

func TestConflictIsReportedAndKept(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "first", access: write}
    - delegate_task: {task: "second", access: write}
    - delegate_task: {task: "third", access: write}
- when: {agent: "0.1", turn: 1}
  latency: 100ms
  call: {search_replace: {path: a.txt, search: "top\n", replace: "FIRST\n"}}
- when: {agent: "0.2", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "SECOND\n"}}
- when: {agent: "0.3", turn: 1}
  call: {search_replace: {path: c.txt, search: "c\n", replace: "C\n"}}
- say: done
`).repo(abc)
	r.run(nil)
	settled, _, _ := of[journal.Settled](r)
	var got []string
	for _, s := range settled {
		got = append(got, s.Child+" "+s.Change)
	}
	if want := []string{"0.1 merged", "0.2 conflict", "0.3 merged"}; !slices.Equal(got, want) {
		t.Fatalf("settled %v, want %v", got, want)
	}
	if text := r.read("a.txt"); !strings.HasPrefix(text, "FIRST\n") || strings.Contains(text, "<<<<") {
		t.Errorf("a.txt = %q, want the first writer's edit only", text)
	}
	if !strings.Contains(settled[1].Report, "conflict: a.txt") {
		t.Errorf("the report does not name the file: %s", settled[1].Report)
	}
	kept := r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "show", settled[1].Ref+":a.txt")
	if !strings.HasPrefix(kept, "SECOND\n") {
		t.Errorf("kept change has %q, want the second writer's edit", kept)
	}
}

// A child's panic, refusal or missing copy is its own result; siblings go on.
func TestChildFaultsAreResults(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: ""}
    - delegate_task: {task: "deep"}
    - delegate_task: {task: "broken"}
- when: {agent: "0.1", turn: 1}
  call: {delegate_task: {task: "deeper"}}
- when: {agent: "0.2"}
  status: 500
- say: done
`).repo(abc)
	if out := r.run(nil); out.Stop != agent.Completed {
		t.Fatalf("stopped as %s (%s), want completed", out.Stop, out.Cause)
	}
	results, agents, _ := of[journal.Result](r)
	var parent []string
	for i, res := range results {
		if agents[i] == "0" {
			parent = append(parent, res.Text)
		}
		if agents[i] == "0.1" && !strings.HasPrefix(res.Text, "Delegation depth limit reached: a subagent cannot delegate. Do the task yourself.") {
			t.Errorf("child's delegation got %q", res.Text)
		}
	}
	if len(parent) != 3 {
		t.Fatalf("parent got %d results, want 3: %q", len(parent), parent)
	}
	for i, want := range []string{"task is empty", "· completed · 2 turns", "· model-error"} {
		if !strings.Contains(parent[i], want) {
			t.Errorf("result %d = %q, want it to say %q", i+1, parent[i], want)
		}
	}
}

func TestCancelKeepsWhatWritersDid(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "first", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: n.txt, content: "half\n"}}
- when: {agent: "0.1"}
  latency: 1h
  say: never
- say: done
`).repo(abc)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := time.Now()
	out := r.runContext(ctx, func(o *orchestrator.Options) {
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Agent == "0.1" && e.Kind == "result" {
				cancel()
			}
		}
	})
	if out.Stop != agent.Cancelled {
		t.Errorf("stopped as %s, want cancelled", out.Stop)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("cancelling took %v", d)
	}
	settled, _, _ := of[journal.Settled](r)
	if len(settled) != 1 || settled[0].Change != delegate.Kept || settled[0].Ref == "" {
		t.Fatalf("settled %+v, want one change kept", settled)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "n.txt")); err == nil {
		t.Error("a cancelled child's file reached the tree")
	}
	if text := r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "show", settled[0].Ref+":n.txt"); text != "half\n" {
		t.Errorf("kept n.txt = %q", text)
	}
}

// answers is a person who says the same each time.
type answers struct {
	yes    bool
	butNot string // to questions with this purpose; "" for none
	asked  []gate.Question
}

func (a *answers) Ask(_ context.Context, q gate.Question) (gate.Answer, error) {
	a.asked = append(a.asked, q)
	return gate.Answer{Granted: a.yes && (a.butNot == "" || !strings.Contains(q.Purpose, a.butNot))}, nil
}

func TestConfirmAsksAtTheMerge(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			needBox(t)
			r := newRig(t, fmt.Sprintf(threeWriters, "30ms", "0ms", "10ms")).repo(abc)
			before := r.tree()
			a := &answers{yes: yes}
			r.run(func(o *orchestrator.Options) { o.Access, o.Asker = gate.Confirm, a })
			if len(a.asked) != 3 {
				t.Fatalf("asked %d times, want once for each merge: %+v", len(a.asked), a.asked)
			}
			for i, q := range a.asked {
				if want := fmt.Sprintf("0.%d", i+1); q.Agent != want || !strings.Contains(q.Detail, "\n+") {
					t.Errorf("question %d is about %s with %q, want %s and its diff", i+1, q.Agent, q.Detail, want)
				}
			}
			if changed := r.tree() != before; changed != yes {
				t.Errorf("tree changed = %v after answer %v", changed, yes)
			}
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	r := newRig(t, threeQuickWriters).repo(abc)
	before := r.tree()
	out := r.run(func(o *orchestrator.Options) { o.Access = gate.Confirm })
	if !out.Unasked || out.Stop != agent.Completed || !slices.Equal(out.Unmerged, []string{"0.1", "0.2", "0.3"}) {
		t.Errorf("outcome %+v, want completed with three changes unasked", out)
	}
	wants(t, r.reports(), "has no terminal"+delegate.GoOn, "has no terminal"+delegate.GoOn, "has no terminal"+delegate.GoOn)
	if r.tree() != before {
		t.Error("the tree changed without approval")
	}
}

func TestBudgetEndsTheRun(t *testing.T) {
	r := newRig(t, `
- usage: {input: 400, output: 100}
  call: {read_file: {path: a.txt}}
`).repo(abc)
	out := r.run(func(o *orchestrator.Options) { o.Budget = 20_000; o.MaxTurns = 1000 })
	if out.Stop != agent.OverBudget {
		t.Errorf("stopped as %s (%s), want budget", out.Stop, out.Cause)
	}
	ended, _, _ := of[journal.RunEnded](r)
	u := ended[0].Usage
	if n := u.Prompt().N + u.Output.N; n > 20_000+500 || n < 15_000 {
		t.Errorf("spent %d tokens of 20000", n)
	}
}

func TestUsersFolderStaysClean(t *testing.T) {
	r := newRig(t, threeQuickWriters).repo(abc)
	r.write(map[string]string{"staged.txt": "s\n"})
	r.git("add", "staged.txt")
	index, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	r.run(nil)
	after, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(index, after) {
		t.Error("the user's index changed")
	}
	if list := r.git("worktree", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("git worktree list = %q", list)
	}
	if refs := r.git("for-each-ref"); strings.Contains(refs, "skein") {
		t.Errorf("refs left behind: %s", refs)
	}
	if status := r.git("status", "--porcelain"); strings.Contains(status, ".skein") {
		t.Errorf("status shows our folder: %s", status)
	}
	left, err := filepath.Glob(filepath.Join(r.cache, "copies", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("copies left: %v (%v)", left, err)
	}
}
