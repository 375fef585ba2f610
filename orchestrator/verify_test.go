package orchestrator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
)

// Whoever may write is done when the check says so; readers are not asked.
func TestVerifyHoldsWhoMayWrite(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "write", access: write}}, {delegate_task: {task: "look"}}]
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: n.txt, content: "wrong\n"}}
- when: {agent: "0.1", turn: 3, user: "grep: n.txt says wrong"}
  call: {write_file: {path: n.txt, content: "right\n"}}
- say: done
`).repo(abc)
	out := r.run(func(o *orchestrator.Options) {
		o.Verify = "if grep -q right n.txt; then exit 0; fi; echo grep: n.txt says $(cat n.txt) >&2; exit 7"
	})
	if out.Stop != agent.Completed || r.read("n.txt") != "right\n" {
		t.Errorf("stopped as %s (%s), n.txt = %q", out.Stop, out.Cause, r.read("n.txt"))
	}
	checks, agents, _ := of[journal.Checked](r)
	var got []string
	for i, c := range checks {
		got = append(got, agents[i]+" "+map[int]string{0: "passed", 7: "failed"}[c.Exit])
	}
	if want := []string{"0.1 failed", "0.1 passed", "0 passed"}; !slices.Equal(got, want) {
		t.Errorf("checked %q, want %q", got, want)
	}
	s := r.settled()
	if !strings.Contains(s[0].Report, "verify: if grep -q right") || !strings.Contains(s[0].Report, "(exit 0)") || strings.Contains(s[1].Report, "verify") {
		t.Errorf("reports %q and %q, want the check in the writer's", s[0].Report, s[1].Report)
	}
}

// A child whose check fails for good ends stuck, and its change is kept.
func TestVerifyThatFailsForGood(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: n.txt, content: "n\n"}}
- say: done
`).repo(abc)
	out := r.run(func(o *orchestrator.Options) { o.Verify = "yes '0123456789' | head -n 900; exit 3" })
	if out.Stop != agent.Stuck || out.Cause != "its check still fails: yes '0123456789' | head -n 900; exit 3 (exit 3)" {
		t.Errorf("stopped as %s (%s), want stuck", out.Stop, out.Cause)
	}
	if s := r.settled(); s[0].Change != "kept" || !strings.Contains(s[0].Report, "stuck (its check still fails: ") {
		t.Errorf("settled %+v", s[0])
	}
	said, _, _ := of[journal.Message](r)
	var told int
	for _, m := range said {
		if text := m.Message.Text; strings.HasPrefix(text, "You cannot finish yet") {
			told++
			if n := strings.Count(text, "0123456789"); n < 360 || n > 364 {
				t.Errorf("the model is shown %d lines of eleven characters, want 4,000 characters", n)
			}
		}
	}
	if told != 6 {
		t.Errorf("told %d times, want 3 times each", told)
	}
}

// Where there is no box the check is not run, and that is said once.
func TestVerifyWithoutABox(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- say: done
`).repo(abc)
	out := r.run(func(o *orchestrator.Options) {
		o.Verify = "false"
		o.Probe = func(context.Context, bool) error { return errors.New("no box on this system") }
	})
	checks, _, _ := of[journal.Checked](r)
	if out.Stop != agent.Completed || len(checks) > 0 {
		t.Errorf("stopped as %s, checked %+v", out.Stop, checks)
	}
	if said := slices.DeleteFunc(r.notices(), func(n string) bool { return !strings.Contains(n, "--verify is not run") }); len(said) != 1 {
		t.Errorf("said %q, want once that it is not run", r.notices())
	}
}

// Merges that cannot be checked as asked are refused before anything is begun.
func TestVerifyMergeNeedsABox(t *testing.T) {
	no := errors.New("no box on this system")
	var events []journal.Event
	_, err := orchestrator.Run(t.Context(), orchestrator.Options{
		Dir: t.TempDir(), Client: planner{}, VerifyMerge: "true",
		Boxes: orchestrator.Boxes{Probe: func(context.Context, bool) error { return no }},
		Watch: func(e journal.Event) { events = append(events, e) },
	}, "go")
	if h := (interface{ Hint() string })(nil); !errors.Is(err, no) || !errors.As(err, &h) || !strings.Contains(h.Hint(), "--sandbox off") {
		t.Errorf("Run = %v, want why with a hint", err)
	}
	if slices.ContainsFunc(events, func(e journal.Event) bool { return e.Kind == "agent-started" }) {
		t.Error("the agent was started")
	}
}

// A merge that fails its check is resolved within the files of the changes it holds, and what
// resolves it is checked itself.
func TestVerifyMergeIsHeldBySolutions(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one", access: write}}, {delegate_task: {task: "two", access: write}}]
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: one, content: "1\n"}}
- when: {agent: "0.2", turn: 1}
  call: {write_file: {path: two, content: "2\n"}}
- when: {agent: "0.3", turn: 1, task: "(?s)fails a check.*exit 1.*both are there.*Change only these files: one, two\n"}
  call: {write_file: {path: other, content: "x\n"}}
- when: {agent: "0.4", turn: 1, task: "it changed files that do not conflict: other"}
  call: {bash: {command: "echo more >> one"}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.VerifyMerge = "touch made; test ! -e two || { echo both are there; exit 1; }"
	})
	s := r.settled()
	if s[0].Change != "merged" || s[1].Change != "conflict" || s[1].Ref == "" || !slices.ContainsFunc(s[1].Conflicts, func(c string) bool { return strings.HasSuffix(c, " (verify)") }) {
		t.Errorf("settled %+v, want the second kept for its check", s)
	}
	for _, want := range []string{"| both are there\n", "not resolved: 0.3: it changed files that do not conflict: other\n", "not resolved: 0.4: with it, the check of merges fails"} {
		if !strings.Contains(s[1].Report, want) {
			t.Errorf("report %q, want %q", s[1].Report, want)
		}
	}
	if tree := r.tree(); !strings.Contains(tree, "one -rw") || strings.Contains(tree, "two") || strings.Contains(tree, "made") {
		t.Errorf("the tree is %s, want the first change and nothing of checks", tree)
	}
	r.nothingLeft(s[1].Ref)
}

// Without a box a copy is seen where it lies, at a path of its own each time: what models are shown
// of checks names its files from the workspace.
func TestChecksNameFilesFromTheWorkspace(t *testing.T) {
	t.Parallel()
	const complain = `; echo "$PWD/a.go:3: wrong, and $(dirname "$PWD")/b.go:4, in $PWD"; exit 1`
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one", access: write}}, {delegate_task: {task: "two", access: write}}]
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: one, content: "1\n"}}
- when: {agent: "0.1", user: "You cannot finish yet"}
  call: {bash: {command: "touch verified"}}
- when: {agent: "0.2", turn: 1}
  calls: [{write_file: {path: two, content: "2\n"}}, {bash: {command: "touch verified"}}]
- when: {agent: ["0.3", "0.4"], turn: 1}
  call: {write_file: {path: verified, content: "2\n"}}
- say: done
`).repo(map[string]string{"sub/x": "x\n"})
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox, o.ChildTurns, o.Dir = true, 3, o.Dir+"/sub"
		o.Verify = `test "${PWD%/copies/*}" = "$PWD" -o -e verified && exit` + complain
		o.VerifyMerge = "test ! -e two && exit" + complain
	})
	const want = "./a.go:3: wrong, and ../b.go:4, in ."
	checks, agents, _ := of[journal.Checked](r)
	shown := map[string]bool{}
	for i, c := range checks {
		if c.Exit != 0 {
			shown[agents[i]] = true
			if strings.TrimSpace(c.Text) != want {
				t.Errorf("check of %s says %q, want %q", agents[i], c.Text, want)
			}
		}
	}
	if !shown["0.1"] || !shown["0"] {
		t.Errorf("checks that failed: %v, want one of 0.1 and those of merges", shown)
	}
}

// A copy of a checked merge that cannot be removed is told of, and is no reason not to merge.
func TestVerifyMergeThatLeavesItsCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: one, content: "1\n"}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox, o.VerifyMerge = true, "mkdir -p ../base/in/the/way" // where the mark of a whole copy stands
	})
	if s := r.settled()[0]; s.Change != delegate.Merged || r.read("one") != "1\n" {
		t.Errorf("settled %+v, want it merged", s)
	}
	if !slices.ContainsFunc(r.notices(), func(n string) bool { return strings.Contains(n, "the copy of 0.1-check was not removed: ") }) {
		t.Errorf("the user was told %q, want of the copy", r.notices())
	}
}

// A check that ends with the run has not failed: nothing of it is said of the change, which is
// kept.
func TestVerifyMergeThatTheRunEnds(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits sync.WaitGroup
	defer waits.Wait()
	waits.Go(func() {
		_, _ = os.ReadFile(begun) // until the check closes it
		cancel()
	})
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: one, content: "1\n"}}
- say: done
`).repo(abc)
	r.runContext(ctx, func(o *orchestrator.Options) {
		o.NoSandbox, o.VerifyMerge = true, "echo > "+begun+"; sleep 60"
	})
	if s := r.settled()[0]; s.Change != delegate.Kept || s.Ref == "" || !strings.Contains(s.Report, "\nnot merged: the run was ended before\n") {
		t.Errorf("settled %+v, want it kept for the end of the run", s)
	}
}
