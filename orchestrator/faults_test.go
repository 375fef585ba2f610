package orchestrator_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/orchestrator"
	"skein/tools/gate"
	"skein/worktree"
)

// faulty is a client that panics when one agent asks for one of its replies.
type faulty struct {
	model.Client
	agent string
	turn  int
}

func (f faulty) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	if req.Origin.Agent == f.agent && req.Origin.Turn == f.turn {
		panic("planted")
	}
	return f.Client.Exchange(ctx, req)
}

// A child whose harness panics is settled like any other: counted, reported in its place,
// and what it had changed is kept.
func TestAPanicIsTheChildsOwnOutcome(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "first", access: write}
    - delegate_task: {task: "second", access: write}
    - delegate_task: {task: "third"}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: half.txt, content: "half\n"}}
- when: {agent: "0.2", turn: 1}
  call: {write_file: {path: whole.txt, content: "whole\n"}}
- say: done
`).repo(abc)
	out := r.run(func(o *orchestrator.Options) { o.Client = faulty{o.Client, "0.1", 2} })
	if out.Stop != agent.Completed {
		t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
	}
	settled, _, _ := of[journal.Settled](r)
	var got []string
	for _, s := range settled {
		got = append(got, s.Child+" "+s.Change)
	}
	if want := []string{"0.1 kept", "0.2 merged", "0.3 "}; !slices.Equal(got, want) {
		t.Fatalf("settled %q, want %q", got, want)
	}
	if text := r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "show", settled[0].Ref+":half.txt"); text != "half\n" {
		t.Errorf("kept half.txt = %q", text)
	}
	if rep := settled[0].Report; !strings.Contains(rep, "· failed (the harness failed)") || strings.Contains(rep, "planted") {
		t.Errorf("report = %q", rep)
	}
	ended, _, _ := of[journal.RunEnded](r)
	if e := ended[0]; e.Children != 3 || e.Kept != 1 || e.Merged != 1 {
		t.Errorf("receipt %+v, want 3 children, 1 kept, 1 merged", e)
	}
	faults, agents, _ := of[journal.Fault](r)
	if len(faults) != 1 || agents[0] != "0.1" || !strings.Contains(faults[0].Stack, "Exchange") {
		t.Errorf("faults %+v of %v, want one of 0.1 with its stack", faults, agents)
	}
	if res := r.results("0"); len(res) != 3 || res[0].ID != settledCall(r, 0) || res[2].ID != settledCall(r, 2) {
		t.Errorf("results out of order: %+v", res)
	}
}

// A child whose settling panics did work: it is not said to have been cancelled.
func TestAPanicWhileSettling(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: n.txt, content: "n\n"}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox, o.Access = true, gate.Confirm
		o.Asker = replies(func(gate.Question) gate.Answer { panic("planted") })
	})
	s := r.settled()
	if len(s) != 1 || !strings.Contains(s[0].Report, "· failed (the harness failed while it settled this child) · 2 turns\n") {
		t.Errorf("settled %+v, want that the harness failed", s)
	}
	ended, _, _ := of[journal.RunEnded](r)
	if e := ended[0]; e.Stop != string(agent.Completed) || e.Children != 1 || e.Unfinished != 1 || e.Cancelled != 0 {
		t.Errorf("receipt %+v, want one child unfinished", e)
	}
}

// settledCall is the id of the parent's i-th call.
func settledCall(r *rig, i int) string {
	r.t.Helper()
	calls, agents, _ := of[journal.Call](r)
	for k, c := range calls {
		if agents[k] == "0" {
			if i == 0 {
				return c.ID
			}
			i--
		}
	}
	r.t.Fatal("no such call")
	return ""
}

// What a provider says, and where things lie on this machine, are for people: the parent's
// model is told the same on every machine.
func TestReportsHoldNothingOfThisMachine(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one"}}, {delegate_task: {task: "two", access: write}}]
- when: {agent: "0.1"}
  status: 500
  body: "request 7f3a failed at 10.0.0.7"
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) { o.Cache = "/proc/no/such/place" })
	for _, s := range r.settled() {
		for _, secret := range []string{"7f3a", "127.0.0.1", r.cache, "/proc/no", "s1"} {
			if strings.Contains(s.Report, secret) {
				t.Errorf("report of %s holds %q: %s", s.Child, secret, s.Report)
			}
		}
		if !strings.Contains(s.Report, "model-error") && !strings.Contains(s.Report, "refused (its workspace could not be made") {
			t.Errorf("report of %s = %q", s.Child, s.Report)
		}
	}
	if p := r.settled()[0].People; !strings.Contains(p, "7f3a") {
		t.Errorf("people are told %q, without the provider's words", p)
	}
}

func (r *rig) settled() []*journal.Settled {
	r.t.Helper()
	list, _, _ := of[journal.Settled](r)
	return list
}

// Children that never got a slot are settled too.
func TestCancelledInTheQueue(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one"}}, {delegate_task: {task: "two"}}]
- when: {agent: "0.*"}
  latency: 1h
  say: never
- say: done
`).repo(abc)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := r.runContext(ctx, func(o *orchestrator.Options) {
		o.Jobs = 1
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Kind == "agent-started" && e.Agent != "0" {
				cancel()
			}
		}
	})
	if out.Stop != agent.Cancelled {
		t.Errorf("stopped as %s", out.Stop)
	}
	s := r.settled()
	if len(s) != 2 || !strings.Contains(s[0].Report+s[1].Report, "cancelled (before it started)") {
		t.Fatalf("settled %+v", s)
	}
	for i, want := range []string{"0.1", "0.2"} {
		if s[i].Child != want {
			t.Errorf("child %d settled is %s, want %s", i+1, s[i].Child, want)
		}
	}
}

// A writer has no more reach than its parent: in a subdirectory of a repository it cannot
// change what lies beside it, and if it could it would not be merged.
func TestWriterInASubdirectoryStaysThere(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - bash: {command: "echo parent > ../a.txt"}
    - delegate_task: {task: "write", access: write}
- when: {agent: "0.1", turn: 1}
  calls:
    - bash: {command: "echo child > ../a.txt"}
    - bash: {command: "echo child > ../new.txt"}
    - bash: {command: "echo child > b.txt && git add b.txt && git commit -qm b"}
    - bash: {command: "cat ../.skein/sessions/*/journal.jsonl"}
- say: done
`).repo(map[string]string{"a.txt": "top\n", "sub/b.txt": "b\n", ".skein/sessions/other/journal.jsonl": "private\n"})
	r.run(func(o *orchestrator.Options) { o.Dir = filepath.Join(r.dir, "sub") })
	// The parent's box shows a /tmp of its own, where this test's folder lies too: what it
	// wrote beside its workspace is gone with the box.
	for i, res := range r.results("0.1") {
		if res.OK != (i == 2) {
			t.Errorf("call %d: ok = %v, %s", i+1, res.OK, res.Text)
		}
	}
	if r.read("a.txt") != "top\n" || r.read("sub/b.txt") != "child\n" {
		t.Errorf("a.txt = %q, sub/b.txt = %q", r.read("a.txt"), r.read("sub/b.txt"))
	}
	if _, err := os.Stat(filepath.Join(r.dir, "new.txt")); err == nil {
		t.Error("new.txt appeared beside the workspace")
	}
}

// Nobody is asked to approve what does not merge.
func TestConflictsAreNotAskedAbout(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one", access: write}}, {delegate_task: {task: "two", access: write}}]
- when: {agent: "0.1", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "ONE\n"}}
- when: {agent: "0.2", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TWO\n"}}
- say: done
`).repo(abc)
	a := &answers{yes: true}
	r.run(func(o *orchestrator.Options) { o.Access, o.Asker, o.OnConflict = gate.Confirm, a, orchestrator.Report })
	if len(a.asked) != 1 || a.asked[0].Agent != "0.1" {
		t.Errorf("asked %+v, want about 0.1 only", a.asked)
	}
	s := r.settled()
	if s[1].Change != delegate.Conflict || !strings.Contains(s[1].Report, "| <<<<<<< the-changes-before-it\n| ONE\n| =======\n| TWO\n") {
		t.Errorf("second report = %q, want a conflict that shows both sides", s[1].Report)
	}
}

// Where the journal cannot be written, questions are answered and nothing is changed.
func TestNothingChangesWithoutAJournal(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - read_file: {path: a.txt}
    - write_file: {path: n.txt, content: "n\n"}
    - bash: {command: "touch m.txt"}
    - delegate_task: {task: "write", access: write}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: o.txt, content: "o\n"}}
- say: the answer
`).repo(abc)
	if err := os.WriteFile(filepath.Join(r.dir, ".skein"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := r.tree()
	out := r.run(nil)
	if out.Stop != agent.Completed || out.Answer != "the answer" {
		t.Errorf("outcome %+v, want the answer", out)
	}
	for i, res := range r.results("0") {
		if reads := i == 0 || i == 3; res.OK != reads {
			t.Errorf("call %d: ok = %v, %s", i+1, res.OK, res.Text)
		}
	}
	if res := r.results("0.1"); len(res) != 1 || res[0].OK {
		t.Errorf("the child's write: %+v", res)
	}
	if r.tree() != before {
		t.Error("the tree changed")
	}
	var said int
	for _, n := range r.notices() {
		if strings.Contains(n, "journal cannot be written") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times: %q", said, r.notices())
	}
}

// Whatever a tool says, what the model is shown has an end.
func TestResultsHaveAnEnd(t *testing.T) {
	r := newRig(t, "- when: {turn: 1}\n  call: {read_file: {path: \""+strings.Repeat("é/", 200_000)+"\"}}\n- say: done\n").repo(abc)
	r.run(nil)
	res := r.results("0")
	if len(res) != 1 || len(res[0].Text) > 12_000 || !strings.Contains(res[0].Text, "bytes cut") {
		t.Errorf("result of %d bytes", len(res[0].Text))
	}
}

// Somebody removes what a run works with while a writer works: the report says where the
// change is, and no ref is named that does not stand.
func TestReportSaysWhereAChangeIs(t *testing.T) {
	needBox(t)
	for name, want := range map[string]struct{ change, says string }{
		"store": {delegate.Kept, "its copy alone holds it"},
		"cache": {delegate.Lost, "nothing is left of it"},
	} {
		for _, backend := range []string{worktree.Fresh, worktree.Overlay} {
			t.Run(name+" "+backend, func(t *testing.T) {
				r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: n.txt, content: "n\n"}}
- say: done
`).repo(abc)
				r.run(func(o *orchestrator.Options) {
					remove := map[string]string{"store": filepath.Join(r.dir, ".git", "skein"), "cache": o.Cache}[name]
					o.Copies = backend
					watch := o.Watch
					o.Watch = func(e journal.Event) {
						watch(e)
						if e.Agent == "0.1" && e.Kind == "result" {
							if err := os.RemoveAll(remove); err != nil {
								t.Error(err)
							}
						}
					}
				})
				s := r.settled()
				if len(s) != 1 || s[0].Change != want.change || s[0].Ref != "" || !strings.Contains(s[0].Report, want.says) || strings.Contains(s[0].Report, "it is kept: ") {
					t.Errorf("settled %+v, want %s: %s", s, want.change, want.says)
				}
				if strings.Contains(s[0].People, "/bin/git") || !strings.Contains(s[0].People+s[0].Report, "removed") && !strings.Contains(s[0].People, "is gone") {
					t.Errorf("people are told %q, want what is missing", s[0].People)
				}
			})
		}
	}
}
