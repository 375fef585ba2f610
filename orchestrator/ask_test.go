package orchestrator_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// replies is a person who is asked.
type replies func(gate.Question) gate.Answer

func (f replies) Ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	return f(q), ctx.Err()
}

// While a child waits for an answer its clock stands still. A person who does not answer in time
// has said no, which the model is told.
func TestWaitingForAnAnswerIsNotTheChildsTime(t *testing.T) {
	for _, tt := range []struct {
		takes, askTime time.Duration
		says           string
	}{
		{time.Hour, 2 * time.Hour, "created n.txt"},
		{2 * time.Hour, time.Hour, "the user did not answer in time, and the question is withdrawn. Go on without it, and say so in your answer"},
	} {
		t.Run(tt.says[:12], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				writes := ask{writes: true, child: &grove{thinks: time.Second, turns: []reply{{{tool: "write_file", args: `{"path":"n.txt","content":"x"}`}}}}}
				r, wall := grow(t, plant(&grove{thinks: time.Second, turns: []reply{{writes}}}), func(o *orchestrator.Options) {
					o.Access, o.ChildTime, o.AskTime = gate.Confirm, 10*time.Second, tt.askTime
					o.Asker = slowly{tt.takes}
				})
				if want := min(tt.takes, tt.askTime) + 4*time.Second; wall != want {
					t.Errorf("ended after %v, want %v", wall, want)
				}
				if r.out.Unasked != (tt.askTime < tt.takes) {
					t.Errorf("unasked = %v", r.out.Unasked)
				}
				if res := r.results("0.1"); len(res) != 1 || !strings.HasPrefix(res[0].Text, tt.says) {
					t.Errorf("the child was told %+v, want %q", res, tt.says)
				}
			})
		})
	}
}

// slowly is a person who says yes after a while.
type slowly struct{ takes time.Duration }

func (s slowly) Ask(ctx context.Context, _ gate.Question) (gate.Answer, error) {
	select {
	case <-time.After(s.takes):
		return gate.Answer{Granted: true}, nil
	case <-ctx.Done():
		return gate.Answer{}, context.Cause(ctx)
	}
}

// A child that waits for an answer holds nobody up: its sibling ends meanwhile.
func TestSiblingsGoOnWhileOneIsAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "write", title: "the writer", access: write}}, {delegate_task: {task: "read"}}]
- when: {agent: "0.1", turn: 1}
  call: {bash: {command: "echo x > n.txt"}}
- when: {agent: "0.2", turn: 1}
  call: {read_file: {path: a.txt}}
- say: done
`).repo(abc)
	ended := make(chan struct{})
	var asked []gate.Question
	r.run(func(o *orchestrator.Options) {
		o.Access, o.NoSandbox = gate.Confirm, true
		o.Asker = replies(func(q gate.Question) gate.Answer {
			if asked = append(asked, q); len(asked) == 1 {
				select {
				case <-ended:
				case <-time.After(time.Minute):
					t.Error("the sibling did not go on")
				}
			}
			return gate.Answer{Granted: true}
		})
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Agent == "0.2" && e.Kind == "agent-ended" {
				close(ended)
			}
		}
	})
	if len(asked) != 2 {
		t.Fatalf("asked %+v, want about the command and the merge", asked)
	}
	if q := asked[0]; q.Agent != "0.1" || q.Title != "the writer" || q.Tool != "bash" || q.Purpose != "run a command outside of a box" ||
		q.Detail != "echo x > n.txt" || !filepath.IsAbs(q.Dir) {
		t.Errorf("first question %+v", q)
	}
	if q := asked[1]; q.Agent != "0.1" || q.Purpose != "merge its changes" || !strings.Contains(q.Detail, "\n+x") || q.Dir != r.dir || !slices.Equal(q.Paths, []string{"n.txt"}) {
		t.Errorf("second question %+v", q)
	}
	if r.read("n.txt") != "x\n" {
		t.Errorf("n.txt = %q", r.read("n.txt"))
	}
}

// A no is told to the child, with its reason, and to the parent. Who asks for the same a third
// time is ended.
func TestThirdDenialEndsAChild(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "obstinate", access: write}}, {delegate_task: {task: "reader"}}, {delegate_task: {task: "sensible", access: write}}]
- when: {agent: "0.1"}
  say: "trying"
  calls: [{write_file: {path: n.txt, content: "n\n"}}, {bash: {command: "make"}}]
- when: {agent: "0.2"}
  calls: [{write_file: {path: n.txt, content: "n\n"}}]
- when: {agent: "0.3", turn: 1}
  calls: [{bash: {command: "make"}}, {bash: {command: "make all"}}]
- when: {agent: "0.3", result: "the user said no: not now"}
  say: went without
- say: done
`).repo(abc)
	var asked []string
	r.run(func(o *orchestrator.Options) {
		o.Access, o.NoSandbox, o.Jobs = gate.Confirm, true, 1
		o.Asker = replies(func(q gate.Question) gate.Answer {
			asked = append(asked, q.Agent+" "+q.Detail)
			return gate.Answer{Reason: "not now. It is late"}
		})
	})
	if want := []string{"0.1 make", "0.1 make", "0.1 make", "0.3 make", "0.3 make all"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	s := r.settled()
	for i, want := range []string{
		"· stuck (the same bash call was denied 3 times) · 3 turns\nkept · 1 file",
		"· stuck (the same write_file call was denied 3 times) · 3 turns\ndenied: 3 (write_file: you may read only)\nit gave no answer",
		"· completed · 2 turns · unverified: it was to change files and changed none\nno changes\ndenied: 2 (bash: the user said no: not now. It is late)\nanswer:\nwent without",
	} {
		if !strings.Contains(s[i].Report, want) {
			t.Errorf("report %d = %q, want %q", i+1, s[i].Report, want)
		}
	}
	if want := "denied: 3 (bash: the user said no: not now. It is late)\nanswer:\ntrying"; !strings.HasSuffix(s[0].Report, want) {
		t.Errorf("report 1 = %q, want it to end with %q", s[0].Report, want)
	}
}

// The first agent is not ended by denials but by the guard against repetition; the person is
// left alone after the third time.
func TestParentIsNotAskedAboutForEver(t *testing.T) {
	t.Parallel()
	r := newRig(t, `- call: {bash: {command: "make"}}`)
	asked := 0
	out := r.run(func(o *orchestrator.Options) {
		o.Access = gate.Confirm
		o.Asker = replies(func(gate.Question) gate.Answer { asked++; return gate.Answer{} })
	})
	if asked != 3 || out.Stop != agent.Stuck {
		t.Errorf("asked %d times, ended %s; want 3 times, stuck", asked, out.Stop)
	}
	if res := r.results("0"); len(res) != 5 || !strings.HasPrefix(res[4].Text, "this same call was denied 3 times, and the user is not asked again.") {
		t.Errorf("results %+v", res)
	}
}

// Two levels of writers are asked about once, at the border of the user's tree, where nothing
// has happened before; with Each about everything.
func TestMergesAreAskedAtTheUsersTree(t *testing.T) {
	t.Parallel()
	for each, want := range map[bool][]string{
		false: {"0.1 merge its changes"},
		true:  {"0.1.1 change a file in its copy", "0.1.1 merge its changes into the copy of 0.1", "0.1 change a file in its copy", "0.1 merge its changes"},
	} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "divide", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {delegate_task: {task: "part", access: write}}
- when: {agent: "0.1.1", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "part\n"}}
- when: {agent: "0.1", turn: 2}
  call: {write_file: {path: n.txt, content: "n\n"}}
- say: done
`).repo(abc)
			before := r.tree()
			var asked []string
			r.run(func(o *orchestrator.Options) {
				o.Access, o.MaxDepth, o.NoSandbox, o.Each = gate.Confirm, 2, true, each
				o.Asker = replies(func(q gate.Question) gate.Answer {
					if asked = append(asked, q.Agent+" "+q.Purpose); r.tree() != before {
						t.Errorf("the tree has changed before the answer to %q", asked)
					}
					return gate.Answer{Granted: true}
				})
			})
			if !slices.Equal(asked, want) {
				t.Errorf("asked %q, want %q", asked, want)
			}
			if a, n := r.read("a.txt"), r.read("n.txt"); !strings.HasPrefix(a, "part\n") || n != "n\n" {
				t.Errorf("a.txt = %q, n.txt = %q", a, n)
			}
			merged := 0
			for _, s := range r.settled() {
				if s.Change == "merged" {
					merged++
				}
			}
			if merged != 2 {
				t.Errorf("%d merges, want 2", merged)
			}
		})
	}
}

// What may happen again in copies may not therefore happen in the user's tree, though a copy is
// shown at its path: neither the same edit nor a merge of the same.
func TestYesAgainInACopyIsNoneForTheTree(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "divide", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {delegate_task: {task: "part", access: write}}
- when: {agent: "0.1.1", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "part\n"}}
- when: {agent: "0", turn: 2}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "part\n"}}
- say: done
`).repo(abc)
	before := r.tree()
	asked := map[string]int{}
	r.run(func(o *orchestrator.Options) {
		o.Access, o.MaxDepth, o.Each = gate.Confirm, 2, true
		o.Asker = replies(func(q gate.Question) gate.Answer {
			asked[q.Agent+" "+q.Purpose]++
			inCopy := strings.Contains(q.Purpose, "copy")
			return gate.Answer{Granted: inCopy, Again: inCopy}
		})
	})
	for _, q := range []string{"0.1.1 change a file in its copy", "0.1.1 merge its changes into the copy of 0.1", "0.1 merge its changes", "0 change a file"} {
		if asked[q] == 0 {
			t.Errorf("asked %v, want %q among them", asked, q)
		}
	}
	if r.tree() != before {
		t.Error("the user's tree has changed by a yes to what was done in a copy")
	}
}

// Yes is said to what was shown: what would do something else by then is not done.
func TestYesIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]string{"nothing changes": "", "the file changes": "mine\ntop\n"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, `
- when: {turn: 1}
  call: {search_replace: {path: a.txt, search: "top", replace: "new"}}
- say: done
`)
			r.write(map[string]string{"a.txt": "top\n"})
			r.run(func(o *orchestrator.Options) {
				o.Access = gate.Confirm
				o.Asker = replies(func(q gate.Question) gate.Answer {
					if q.Purpose != "change a file" || !strings.Contains(q.Detail, "\n-top\n+new\n") {
						t.Errorf("asked %+v", q)
					}
					if meanwhile != "" {
						r.write(map[string]string{"a.txt": meanwhile})
					}
					return gate.Answer{Granted: true}
				})
			})
			res := r.results("0")[0]
			if meanwhile == "" {
				if !res.OK || r.read("a.txt") != "new\n" {
					t.Errorf("result %q, a.txt = %q, want the edit", res.Text, r.read("a.txt"))
				}
			} else if res.OK || !strings.Contains(res.Text, "has changed since the user was asked") || r.read("a.txt") != meanwhile {
				t.Errorf("result %q, a.txt = %q, want the user's text", res.Text, r.read("a.txt"))
			}
		})
	}
}

// A tool of the program's own is shown as one: it reaches what the program reaches.
func TestOwnToolsAreAskedAbout(t *testing.T) {
	t.Parallel()
	deployed := 0
	deploy := tools.New(tools.Spec{Name: "deploy", Description: "Deploys."}, scheduler.Execute,
		func(context.Context, tools.Workspace, struct{}) (tools.Result, error) {
			deployed++
			return tools.Result{Text: "deployed"}, nil
		})
	r := newRig(t, "- when: {turn: 1}\n  call: {deploy: {}}\n- say: done\n")
	r.run(func(o *orchestrator.Options) {
		o.Access, o.Own = gate.Confirm, []tools.Tool{deploy}
		o.Asker = replies(func(q gate.Question) gate.Answer {
			if q.Purpose != "call a tool of this program, outside of any box" || deployed > 0 {
				t.Errorf("asked %+v after %d calls", q, deployed)
			}
			return gate.Answer{Granted: true}
		})
	})
	if deployed != 1 {
		t.Errorf("deployed %d times, want once", deployed)
	}
}
