package orchestrator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
)

// Who ends the children of a run gets what they had: the change of the one that worked is kept,
// the one that waited for a slot never starts, and the parent finishes its answer.
func TestEndChildren(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "first", access: write}
    - delegate_task: {task: "second", access: write}
    - delegate_task: {task: "third"}
- when: {agent: "0.1", turn: 1}
  say: "half of it is done"
  call: {write_file: {path: half.txt, content: "half\n"}}
- when: {agent: "0.1"}
  latency: 1h
  say: never
- say: the answer
`).repo(abc)
	var control orchestrator.Control
	if n := control.EndChildren(); n != 0 {
		t.Errorf("EndChildren before the run = %d", n)
	}
	out := r.run(func(o *orchestrator.Options) {
		o.Jobs, o.Control = 1, &control
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Agent == "0.1" && e.Kind == "result" {
				if got := control.Children(); !slices.Equal(got, []string{"0.1", "0.2", "0.3"}) {
					t.Errorf("Children = %q", got)
				}
				if n := control.EndChildren(); n != 3 {
					t.Errorf("EndChildren = %d, want 3", n)
				}
			}
		}
	})
	if out.Stop != agent.Completed || out.Answer != "the answer" {
		t.Errorf("outcome %+v, want the parent's answer", out)
	}
	s := r.settled()
	if len(s) != 3 || s[0].Change != delegate.Kept || s[1].Change != "" || s[2].Change != "" {
		t.Fatalf("settled %+v, want the first kept and nothing of the others", s)
	}
	if text := r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "show", s[0].Ref+":half.txt"); text != "half\n" {
		t.Errorf("kept half.txt = %q", text)
	}
	for i, want := range []string{"half of it is done", "it gave no answer", "it gave no answer"} {
		if rep := s[i].Report; !strings.Contains(rep, "· cancelled (the user ended it)") || !strings.HasSuffix(rep, want) {
			t.Errorf("report %d = %q, want it cancelled, with %q", i+1, rep, want)
		}
		if strings.Contains(s[i].People, "context") {
			t.Errorf("people are told %q, want no more than who ended it", s[i].People)
		}
	}
	for _, child := range s[1:] {
		if want := "cancelled (the user ended it)"; child.People != want {
			t.Errorf("people are told %q, want %q", child.People, want)
		}
	}
	if len(r.bodies("0.2"))+len(r.bodies("0.3")) > 0 {
		t.Error("a child that waited was started")
	}
	if n := len(control.Children()); n > 0 {
		t.Errorf("%d children are left", n)
	}
}

// One child is ended with the children of its own; its siblings stay.
func TestEndOneChild(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "divide it"}}, {delegate_task: {task: "other"}}]
- when: {agent: "0.1", turn: 1}
  call: {delegate_task: {task: "never ends"}}
- when: {agent: "0.1.1"}
  latency: 1h
  say: never
- when: {agent: "0.2"}
  say: all is well
- say: done
`)
	var control orchestrator.Control
	out := r.run(func(o *orchestrator.Options) {
		o.MaxDepth, o.Control = 2, &control
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Agent == "0.1.1" && e.Kind == "agent-started" {
				if control.End("0.3") || !control.End("0.1") {
					t.Error("End of a child that is not there, or not of the one that is")
				}
			}
		}
	})
	if out.Stop != agent.Completed {
		t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
	}
	got := map[string]string{}
	for _, s := range r.settled() {
		got[s.Child], _, _ = strings.Cut(s.Report, "\n")
	}
	for child, want := range map[string]string{"0.1": "· cancelled (the user ended it)", "0.1.1": "· cancelled (the user ended it)", "0.2": "· completed"} {
		if !strings.Contains(got[child], want) {
			t.Errorf("%s reports %q, want %q", child, got[child], want)
		}
	}
}

// Of a child that is ended the children may have finished: what they changed is kept, and the
// reason names who was ended. It is the same where the end comes while a change is applied.
func TestEndedBeforeItsChildrenAreMerged(t *testing.T) {
	t.Parallel()
	deep := strings.NewReplacer(`"0.1"`, `"0.1.1"`, `"0.2"`, `"0.1.2"`, `"0.3"`, `"0.1.3"`, `"0"`, `"0.1"`, " 0.2", " 0.1.2")
	script := `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "both", access: write}}
` + deep.Replace(twoOnALine("0ms", "0ms")+resolves) + andDone
	for name, when := range map[string]string{
		"before":              "collected of 0.1.2",
		"while it is applied": "resolved of 0.1",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, script).repo(abc)
			var control orchestrator.Control
			out := r.run(func(o *orchestrator.Options) {
				o.NoSandbox, o.MaxDepth, o.Control = true, 2, &control
				watch := o.Watch
				o.Watch = func(e journal.Event) {
					watch(e)
					if e.Kind+" of "+e.Agent == when && control.EndChildren() == 0 {
						t.Error("there was nobody to end")
					}
				}
			})
			s := r.settled()
			if out.Stop != agent.Completed || len(s) != 3 || s[1].Child != "0.1.2" || s[1].Change != delegate.Kept {
				t.Fatalf("ended %s, settled %+v; want the change of 0.1.2 kept", out.Stop, s)
			}
			const why = "0.1, which asked for it, was ended before"
			if !strings.Contains(s[1].Report, "\nnot merged: "+why+"\n") {
				t.Errorf("report %q, want who was ended", s[1].Report)
			}
			tag := r.git("--git-dir="+filepath.Join(r.dir, ".git", "skein"), "cat-file", "-p", s[1].Ref)
			if !strings.HasSuffix(tag, "\n\n"+why+"\n") {
				t.Errorf("kept as %q, want %q", tag, why)
			}
		})
	}
}

// A child that never ends is ended when its time is up, and the stage behind it begins.
func TestTimeoutReleasesTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := ask{tool: "write_file", args: `{"path":"after.txt","content":"x"}`}
		f := plant(&grove{turns: []reply{{{child: &grove{end: "hangs"}}, {child: &grove{thinks: time.Second}}, after}}})
		r, wall := grow(t, f, func(o *orchestrator.Options) { o.ChildTime = 10 * time.Second })
		if wall != 10*time.Second {
			t.Errorf("the run took %v, want 10s", wall)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "after.txt")); err != nil {
			t.Errorf("the next stage did not run: %v", err)
		}
	})
}

// The slot of a child that has ended is another's at once, not when its siblings have ended.
func TestSlotIsFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := &grove{thinks: time.Second}
		f := plant(&grove{turns: []reply{{{child: &grove{thinks: 10 * time.Second}}, {child: quick}, {child: quick}}}})
		r, wall := grow(t, f, func(o *orchestrator.Options) { o.Jobs = 2 })
		s := spans(r.events)
		if began := s["0.3"][0].Sub(s["0.1"][0]); began != time.Second || wall != 10*time.Second {
			t.Errorf("the third began after %v of %v, want 1s of 10s", began, wall)
		}
	})
}

// Who ends the children ends the resolving of conflicts, too: no other resolver is tried, and none
// begins for what the children left.
func TestEndingChildrenEndsResolving(t *testing.T) {
	t.Parallel()
	script := twoOnALine("0ms", "0ms") + "- when: {agent: \"0.3\"}\n  latency: 1h\n  say: never\n" + andDone
	for name, tt := range map[string]struct {
		end  func(c *orchestrator.Control) bool
		when func(journal.Event) bool
		says string
	}{
		"all, while it works": {
			func(c *orchestrator.Control) bool { return c.EndChildren() == 1 },
			func(e journal.Event) bool { return e.Agent == "0.3" && e.Kind == "agent-started" },
			"0.3: it did not finish: cancelled (the user ended it)",
		},
		"it alone": {
			func(c *orchestrator.Control) bool { return c.End("0.3") },
			func(e journal.Event) bool { return e.Agent == "0.3" && e.Kind == "agent-started" },
			"0.3: it did not finish: cancelled (the user ended it)",
		},
		"all, before it is asked for": {
			func(c *orchestrator.Control) bool { return c.EndChildren() == 0 },
			func(e journal.Event) bool { return e.Kind == "settled" },
			"the user has ended the subagents",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, script).repo(abc)
			var control orchestrator.Control
			out := r.run(func(o *orchestrator.Options) {
				o.NoSandbox, o.Control = true, &control
				watch := o.Watch
				o.Watch = func(e journal.Event) {
					watch(e)
					if tt.when(e) && len(r.settled()) < 2 && !tt.end(&control) {
						t.Errorf("there was nobody to end at %s of %s", e.Kind, e.Agent)
					}
				}
			})
			s := r.settled()
			if out.Stop != agent.Completed || len(s) != 2 || s[1].Change != delegate.Conflict || !strings.Contains(s[1].Report, tt.says) {
				t.Fatalf("ended %s, settled %+v; want the conflict, and %q", out.Stop, s, tt.says)
			}
			if len(r.bodies("0.4")) > 0 {
				t.Error("another resolver was tried")
			}
		})
	}
}
