package orchestrator_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
	"skein/tools/gate"
)

// twoOnALine are writers of the same line, which end after so long.
func twoOnALine(first, second string) string {
	return fmt.Sprintf(`
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "say ONE at the top", access: write}
    - delegate_task: {task: "say TWO at the top", access: write}
- when: {agent: "0.1", turn: 1}
  latency: %s
  call: {search_replace: {path: a.txt, search: "top\n", replace: "ONE\n"}}
- when: {agent: "0.2", turn: 1}
  latency: %s
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TWO\n"}}
`, first, second)
}

const (
	markers  = `<<<<<<< the-changes-before-it\nONE\n=======\nTWO\n>>>>>>> 0.2\n`
	resolves = `
- when: {agent: "0.3", turn: 1}
  call: {search_replace: {path: a.txt, search: "` + markers + `", replace: "ONE TWO\n"}}
`
	andDone = "- say: done\n"
)

// Who was asked first is merged first, whoever ends first; the second one is resolved, or kept
// where nobody resolves it. What the resolver and the parent are shown is the same either way.
func TestTwoWritersOnALine(t *testing.T) {
	t.Parallel()
	needBox(t)
	shown := ""
	for _, tt := range []struct {
		name          string
		first, second string // what they take
		solved        bool
	}{
		{"the first ends first", "0ms", "60ms", true},
		{"the first ends last", "60ms", "0ms", true},
		{"the first ends last, and nobody resolves it", "60ms", "0ms", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script, line, change := twoOnALine(tt.first, tt.second), "ONE\n", delegate.Conflict
			if tt.solved {
				script, line, change = script+resolves, "ONE TWO\n", delegate.Merged
			}
			r := newRig(t, script+andDone).repo(abc)
			if out := r.run(nil); out.Stop != agent.Completed {
				t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
			}
			if text := r.read("a.txt"); !strings.HasPrefix(text, line+"1\n") {
				t.Errorf("a.txt = %q, want %q first", text, line)
			}
			s := r.settled()
			if len(s) != 2 || s[0].Child != "0.1" || s[0].Change != delegate.Merged || s[1].Change != change {
				t.Fatalf("settled %+v", s)
			}
			if tt.solved && (s[1].Resolved != "0.3" || s[1].Ref != "" || !strings.Contains(s[1].Report, "\nmerged · 1 file · +1 −1 · a.txt\nresolved by 0.3: a.txt (content)\n")) {
				t.Errorf("report %q of %+v, want who resolved it", s[1].Report, s[1])
			}
			if !tt.solved && (s[1].Ref == "" || strings.Count(s[1].Report, "\nnot resolved: 0.") != 2) {
				t.Errorf("report %q, want why two tries failed", s[1].Report)
			}
			r.nothingLeft(s[1].Ref)
			if !tt.solved {
				return
			}
			sent := bytes.Join(slices.Concat(r.bodies("0.3"), r.bodies("0")), []byte("\n"))
			if now := strings.ReplaceAll(string(sent), r.dir, "/dir"); shown == "" {
				shown = now
			} else if now != shown {
				t.Errorf("shown %s\nwant %s", now, shown)
			}
		})
	}
}

// unboxed is for what boxes change nothing of: it takes half the time.
func unboxed(o *orchestrator.Options) { o.NoSandbox = true }

// nothingLeft fails unless all copies are gone and nothing is kept but on that ref.
func (r *rig) nothingLeft(ref string) {
	r.t.Helper()
	if left, err := filepath.Glob(filepath.Join(r.cache, "copies", "*", "*")); err != nil || len(left) > 0 {
		r.t.Errorf("copies left: %q, %v", left, err)
	}
	kept := strings.TrimSpace(r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "for-each-ref", "--format=%(refname)", "refs/skein/s1/1/kept"))
	if kept != ref {
		r.t.Errorf("kept %q, want %q", kept, ref)
	}
}

// A resolver is told of both changes, and nothing of its parent's conversation. It works in the
// slot of its parent, which waits for it.
func TestResolverIsToldOfBothChanges(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, twoOnALine("0ms", "0ms")+resolves+andDone).repo(abc)
	r.run(func(o *orchestrator.Options) { o.Mode, o.Jobs = delegate.Full, 1 }) // the only slot is the parent's
	queued, agents, _ := of[journal.AgentQueued](r)
	i := slices.Index(agents, "0.3")
	if i < 0 {
		t.Fatalf("queued %v, want 0.3", agents)
	}
	for _, want := range []string{
		"- a.txt (content)\n", "Change only these files: a.txt\n",
		"Merged before: the change of 0.1\nIts task:\n| say ONE at the top\nIts answer:\n| done\nIts diff:\n", "| -top\n| +ONE\n",
		"To be merged: the change of 0.2\nIts task:\n| say TWO at the top\n", "| +TWO\n",
	} {
		if !strings.Contains(queued[i].Task, want) {
			t.Errorf("task %q, want it to hold %q", queued[i].Task, want)
		}
	}
	if strings.Contains(queued[i].Task, "c.txt") {
		t.Errorf("task %q tells of what does not conflict", queued[i].Task)
	}
	if s := r.settled()[1]; s.Resolved != "0.3" {
		t.Errorf("settled %+v, want it resolved", s)
	}
	started, agents, _ := of[journal.AgentStarted](r)
	if i := slices.Index(agents, "0.3"); i < 0 || started[i].Context != 2 {
		t.Errorf("the resolver's first request is not the system message and its task: %+v", started)
	}
}

// The second try is told what was wrong with the first.
func TestSecondResolverIsToldWhatWasWrong(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoOnALine("0ms", "0ms")+`
- when: {agent: "0.3", turn: 1}
  call: {read_file: {path: a.txt}}
- when: {agent: "0.4", turn: 1, task: "conflict markers are left in a.txt"}
  call: {search_replace: {path: a.txt, search: "`+markers+`", replace: "BOTH\n"}}
`+andDone).repo(abc)
	r.run(unboxed)
	if s := r.settled()[1]; s.Change != delegate.Merged || s.Resolved != "0.4" || !strings.HasPrefix(r.read("a.txt"), "BOTH\n") {
		t.Errorf("settled %+v, a.txt = %q", s, r.read("a.txt"))
	}
	ended, _, _ := of[journal.RunEnded](r)
	if e := ended[0]; e.Children != 4 || e.Merged != 2 || e.Kept != 0 {
		t.Errorf("receipt %+v, want 4 children, 2 merged", e)
	}
	r.nothingLeft("")
}

// Whatever resolvers do wrong, nothing of it reaches the tree and the change is kept.
func TestResolversThatFail(t *testing.T) {
	type try struct{ turn, does, why string }
	leaves := try{"turn: 1", `{search_replace: {path: a.txt, search: "<<<<<<< the-changes-before-it\nONE\n=======\n", replace: ""}}`, "conflict markers are left in a.txt"}
	for _, tries := range [][2]try{
		{leaves, {"turn: 1", `{bash: {command: "echo x > a.txt; echo x > c.txt; echo x > new.txt"}}`, "it changed files that do not conflict: c.txt, new.txt"}},
		{{"turn: 1", `{bash: {command: "rm -rf *"}}`, "it changed files that do not conflict: c.txt"}, {"turn: 1", `{bash: {command: "rm a.txt"}}`, "it removed a.txt, which both changes have"}},
		{{"turn: 1", `{bash: {command: "sed -i -e 1d -e '/^===/,/^>>>/d' a.txt"}}`, "nothing of the change is left in it"}, {"turn: 1", `{read_file: {path: a.txt}}`, "conflict markers are left in a.txt"}},
		{{"turn: 9", `{bash: {command: "true"}}`, "it made no tool call"}, {`user: "."`, `{bash: {command: "true"}}`, "it did not finish: max-turns"}},
	} {
		t.Run(tries[0].why+" and "+tries[1].why, func(t *testing.T) {
			t.Parallel()
			script := twoOnALine("0ms", "0ms")
			for i, try := range tries {
				script += fmt.Sprintf("- when: {agent: \"0.%d\", %s}\n  call: %s\n", 3+i, try.turn, try.does)
			}
			r := newRig(t, script+andDone).repo(abc)
			r.run(func(o *orchestrator.Options) { o.NoSandbox, o.ChildTurns = true, 3 })
			s := r.settled()[1]
			if s.Change != delegate.Conflict || s.Ref == "" {
				t.Errorf("settled %+v, want it kept", s)
			}
			for i, try := range tries {
				if want := fmt.Sprintf("not resolved: 0.%d: %s", 3+i, try.why); !strings.Contains(s.Report, want) {
					t.Errorf("report %q, want %q", s.Report, want)
				}
			}
			if text := r.read("a.txt"); !strings.HasPrefix(text, "ONE\n1\n") || r.read("c.txt") != "c\n" {
				t.Errorf("a.txt = %q, c.txt = %q", text, r.read("c.txt"))
			}
			r.nothingLeft(s.Ref)
		})
	}
}

// A resolver counts as a child: where there may be no more the conflict is reported.
func TestResolverCountsAsAChild(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoOnALine("0ms", "0ms")+resolves+andDone).repo(abc)
	r.run(func(o *orchestrator.Options) { o.NoSandbox, o.MaxChildren = true, 2 })
	if s := r.settled()[1]; s.Change != delegate.Conflict || !strings.Contains(s.Report, "not resolved: no subagent is left for it: this run may have 2") {
		t.Errorf("settled %+v, want it kept with the limit", s)
	}
}

// A person who is asked sees what will change, not what the child once made of it.
func TestResolvedMergeIsAskedWithItsResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoOnALine("0ms", "0ms")+resolves+andDone).repo(abc)
	a := &answers{yes: true, butNot: "resolved by"}
	r.run(func(o *orchestrator.Options) { o.NoSandbox, o.Access, o.Asker = true, gate.Confirm, a })
	if len(a.asked) != 2 || !strings.Contains(a.asked[1].Purpose, "resolved by 0.3") || !strings.Contains(a.asked[1].Detail, "-ONE\n+ONE TWO\n") {
		t.Errorf("asked %+v, want the diff of the result", a.asked)
	}
	if s := r.settled()[1]; s.Change != delegate.Kept || s.Ref == "" || !strings.HasPrefix(r.read("a.txt"), "ONE\n1\n") {
		t.Errorf("settled %+v, a.txt = %q, want it kept", s, r.read("a.txt"))
	} else if s.Resolved != "" || !strings.Contains(s.Report, "\nconflict: a.txt (content)\nnot merged: the user said no\nnothing of this change is in the tree; it is kept: skein worktrees show 0.2. ") {
		t.Errorf("report of what nobody merged, and of what is kept as it was made:\n%s", s.Report)
	}
}

// A solution that meets the user's own edit is told as what it is: the texts that conflict are
// those of its resolver.
func TestSolutionMeetsAnEditMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoOnALine("0ms", "0ms")+resolves+andDone).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox = true
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Kind == "resolved" {
				if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte("MINE\n"), 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	})
	s := r.settled()[1]
	if s.Change != delegate.Conflict || s.Resolved != "" || r.read("a.txt") != "MINE\n" {
		t.Errorf("settled %+v, a.txt = %q, want a conflict with the edit", s, r.read("a.txt"))
	}
	for _, want := range []string{"\nnot merged: as 0.3 resolved it, it conflicts with the tree as it is now\n", "\n| ONE TWO\n"} {
		if !strings.Contains(s.Report, want) {
			t.Errorf("report %q, want %q", s.Report, want)
		}
	}
}

// What a run leaves in the tree when somebody edits meanwhile is theirs: no child resolves it.
func TestEditsMeanwhileAreNotResolved(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "ONE\n"}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox = true
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Kind == "collected" {
				if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte("MINE\n"), 0o644); err != nil {
					t.Error(err)
				}
			}
		}
	})
	s := r.settled()
	if len(s) != 1 || s[0].Change != delegate.Conflict || r.read("a.txt") != "MINE\n" {
		t.Errorf("settled %+v, a.txt = %q", s, r.read("a.txt"))
	}
	if tries, _, _ := of[journal.Resolved](r); len(tries) > 0 {
		t.Errorf("tried %+v, want nobody at the user's own edit", tries)
	}
}

// A child's own writers conflict in its copy and are resolved there, one level down.
func TestNestedConflictIsResolvedInTheChildsCopy(t *testing.T) {
	t.Parallel()
	needBox(t)
	deep := strings.NewReplacer(`"0.1"`, `"0.1.1"`, `"0.2"`, `"0.1.2"`, `"0.3"`, `"0.1.3"`, `"0"`, `"0.1"`, " 0.2", " 0.1.2")
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "both", access: write}}
`+deep.Replace(twoOnALine("0ms", "0ms")+resolves)+andDone).repo(abc)
	r.run(func(o *orchestrator.Options) { o.MaxDepth = 2 })
	s := r.settled()
	if len(s) != 3 || s[1].Child != "0.1.2" || s[1].Resolved != "0.1.3" || s[2].Child != "0.1" || s[2].Change != delegate.Merged {
		t.Fatalf("settled %+v", s)
	}
	if text := r.read("a.txt"); !strings.HasPrefix(text, "ONE TWO\n1\n") {
		t.Errorf("a.txt = %q", text)
	}
	r.nothingLeft("")
}

// Whoever ends a resolver wants no other one.
func TestResolverThatIsEndedHasNoSuccessor(t *testing.T) {
	t.Parallel()
	r := newRig(t, twoOnALine("0ms", "0ms")+`
- when: {agent: "0.3"}
  latency: 1h
  say: never
`+andDone).repo(abc)
	var control orchestrator.Control
	r.run(func(o *orchestrator.Options) {
		o.NoSandbox, o.Control = true, &control
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Kind == "agent-started" && e.Agent == "0.3" && !control.End("0.3") {
				t.Error("the resolver is no child that can be ended")
			}
		}
	})
	s := r.settled()[1]
	if s.Change != delegate.Conflict || s.Ref == "" || strings.Count(s.Report, "not resolved: ") != 1 || len(control.Children()) > 0 {
		t.Errorf("settled %+v, want it kept after one try; children %q", s, control.Children())
	}
}

// A resolver that changes nothing solves nothing: what it started from is merged, too, and that
// fails the check as before. The change is kept, not lost.
func TestResolverThatLeavesWhatFailsTheCheck(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: one, content: "1\n"}}
- when: {agent: "0.*", turn: 1}
  call: {read_file: {path: a.txt}}
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) { o.VerifyMerge = "test ! -e one" })
	s := r.settled()[0]
	if s.Change != delegate.Conflict || s.Ref == "" || strings.Count(s.Report, "\nnot resolved: ") != 2 {
		t.Errorf("settled %+v, want it kept after two tries that fail the check", s)
	}
}

// A resolver need not touch the files of the change to have it merged: it may mend what was
// merged before.
func TestResolverThatMendsWhatWasMergedBefore(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "top", access: write}}, {delegate_task: {task: "last", access: write}}, {delegate_task: {task: "three", access: write}}]
- when: {agent: "0.1", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TOP\n"}}
- when: {agent: "0.2", turn: 1}
  call: {bash: {command: "echo last >> a.txt"}}
- when: {agent: "0.3", turn: 1}
  call: {write_file: {path: three, content: "3\n"}}
- when: {agent: "0.4", turn: 1}
  call: {bash: {command: "echo mended >> a.txt"}}
- say: done
`).repo(abc)
	var asked [][]string
	r.run(func(o *orchestrator.Options) {
		o.VerifyMerge, o.Access = "test ! -e three || grep mended a.txt", gate.Confirm
		o.Asker = replies(func(q gate.Question) gate.Answer {
			asked = append(asked, q.Paths)
			return gate.Answer{Granted: true}
		})
	})
	if want := [][]string{{"a.txt"}, {"a.txt"}, {"a.txt", "three"}}; !slices.EqualFunc(asked, want, slices.Equal) {
		t.Errorf("asked about the files %q, want those that change: %q", asked, want)
	}
	if s := r.settled()[2]; s.Change != delegate.Merged || s.Resolved != "0.4" {
		t.Errorf("settled %+v, want it resolved", s)
	}
	if r.read("three") != "3\n" || !strings.HasSuffix(r.read("a.txt"), "last\nmended\n") {
		t.Errorf("the tree is %s, want the change itself, too", r.tree())
	}
}
