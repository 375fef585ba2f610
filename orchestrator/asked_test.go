package orchestrator_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
)

// reports are the texts of the root's delegate_task results.
func (r *rig) reports() (texts []string) {
	for _, res := range r.results("0") {
		if res.Tool == delegate.Name {
			texts = append(texts, res.Text)
		}
	}
	return texts
}

// wants fails where a text does not hold what is wanted in its place.
func wants(t *testing.T, texts []string, want ...string) {
	t.Helper()
	if len(texts) != len(want) {
		t.Fatalf("%d results, want %d: %q", len(texts), len(want), texts)
	}
	for i, w := range want {
		if !strings.Contains(texts[i], w) {
			t.Errorf("result %d = %q, want it to hold %q", i+1, texts[i], w)
		}
	}
}

// A writer that changes anything outside its paths brings nothing back, the old name of a
// renamed file included.
func TestPathsAreHeldAtSettle(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "inside", access: write, paths: ["sub/", "new.txt"]}
    - delegate_task: {task: "outside", access: write, paths: ["sub/**"]}
    - delegate_task: {task: "renames", access: write, paths: ["sub/**"]}
    - delegate_task: {task: "anywhere", access: write, paths: ["**"]}
- when: {agent: "0.1", turn: 1}
  calls:
    - write_file: {path: sub/x.txt, content: "x\n"}
    - write_file: {path: new.txt, content: "n\n"}
- when: {agent: "0.2", turn: 1}
  calls:
    - write_file: {path: sub/y.txt, content: "y\n"}
    - search_replace: {path: c.txt, search: "c\n", replace: "C\n"}
- when: {agent: "0.3", turn: 1}
  call: {bash: {command: "mv a.txt sub/a.txt"}}
- when: {agent: "0.4", turn: 1}
  call: {search_replace: {path: c.txt, search: "c\n", replace: "any\n"}}
- say: done
`).repo(abc)
	r.write(map[string]string{"sub/old.txt": "old\n"})
	r.run(nil)
	wants(t, r.reports(),
		"merged · 2 files",
		"kept · 2 files · +2 −1 · c.txt, sub/y.txt\nnot merged: it changed files outside its paths: c.txt\n",
		"not merged: it changed files outside its paths: a.txt\n",
		"merged · 1 file")
	for name, want := range map[string]string{"a.txt": abc["a.txt"], "c.txt": "any\n", "sub/x.txt": "x\n", "new.txt": "n\n"} {
		if got := r.read(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if strings.Contains(r.tree(), "sub/y.txt") || strings.Contains(r.tree(), "sub/a.txt") {
		t.Errorf("of a change that was kept something is in the tree:\n%s", r.tree())
	}
	if s := r.settled(); s[1].Ref == "" || s[2].Ref == "" {
		t.Errorf("settled %+v and %+v, want both changes kept", s[1], s[2])
	}
	if body := string(r.bodies("0.2")[0]); !strings.Contains(body, "- change only: sub/**. If you change anything else, nothing of your change is merged") {
		t.Errorf("the writer is not told its paths: %s", body)
	}
}

// Where the workspace is a subdirectory, paths count from there.
func TestPathsOfASubdirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "inside", access: write, paths: ["x/*"]}
    - delegate_task: {task: "outside", access: write, paths: ["sub/**"]}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: x/a, content: "a\n"}}
- when: {agent: "0.2", turn: 1}
  call: {write_file: {path: x/b, content: "b\n"}}
- say: done
`).repo(map[string]string{"sub/x/c": "c\n"})
	r.run(func(o *orchestrator.Options) { o.Dir += "/sub" })
	wants(t, r.reports(), "merged · 1 file", "outside its paths: x/b\n")
}

// What cannot be is told to the model, and nothing is begun.
func TestDelegationsThatCannotBe(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(" ", 1<<20)
	for _, tt := range []struct{ args, want string }{
		{`{access: write, paths: ["../x"]}`, `path \"../x\" has ..`},
		{`{access: write, paths: ["/abs"]}`, "is absolute"},
		{`{access: read, paths: ["a"]}`, "paths are for access write"},
		{`{role: ../../etc/passwd}`, "not one of: none, there are none here"},
		{`{model: openai/dear}`, "not one of: none, there are none here"},
		{`{output_schema: {type: 5}}`, "output_schema: "},
		{`{output_schema: {$ref: "file:///etc/passwd"}}`, "only references of the form #/… are understood. Nothing was delegated"},
		{`{output_schema: {description: "` + deep + `x"}}`, "and may have 32768"},
		{`{access: write, paths: ["a.txt"]}`, "paths cannot be held here: writers work in your own tree"}, // no git
	} {
		r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: x, `+tt.args[1:]+`}
- say: done
`)
		out := r.run(func(o *orchestrator.Options) { o.NoSandbox = true })
		queued, _, _ := of[journal.AgentQueued](r)
		reports := r.reports()
		if out.Stop != agent.Completed || len(queued) > 0 || len(reports) != 1 || !strings.Contains(strings.ReplaceAll(reports[0], `"`, `\"`), tt.want) {
			t.Errorf("%.80s: %s, %d children, results %.300q, want %q", tt.args, out.Stop, len(queued), reports, tt.want)
		}
	}
}

// The answer of a child is the JSON that was asked for, or the child did not do its task.
func TestChildAnswersInItsForm(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "count", output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}}
    - delegate_task: {task: "cannot", output_schema: {not: {}}}
    - delegate_task: {task: "knows", output_schema: {type: object, required: [n]}}
- when: {agent: ["0.1", "0.2", "0.3"], turn: 1}
  call: {read_file: {path: a.txt}}
- when: {agent: "0.3", turn: 2}
  say: '{"n": 5}'
- when: {agent: "0.1", user: "Give your final answer"}
  say: '{"n": 11}'
- when: {agent: "0.2", user: "final answer"}
  say: '{"n": 11}'
- say: free words
`).repo(abc)
	r.run(nil)
	wants(t, r.reports(),
		"· completed · 3 turns\nanswer:\n{\"n\": 11}",
		"· stuck (the final answer does not fit the schema: ",
		"· completed · 2 turns\nanswer:\n{\"n\": 5}")
	if text := r.reports()[1]; !strings.HasSuffix(text, "answer:\n{\"n\": 11}") {
		t.Errorf("the refused answer is not shown: %s", text)
	}
	if body := string(r.bodies("0.1")[0]); !strings.Contains(body, "- your answer has to be one JSON value of this schema, with nothing around it: {") {
		t.Errorf("the child is not told the form: %s", body)
	}
}

// Files that two writers changed are named in the reports of both; old names count.
func TestOverlapIsNamedInBothReports(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "first", access: write}
    - delegate_task: {task: "second", access: write}
    - delegate_task: {task: "third", access: write}
    - delegate_task: {task: "reads"}
- when: {agent: "0.1", turn: 1}
  latency: 50ms
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TOP\n"}}
- when: {agent: "0.2", turn: 1}
  calls:
    - search_replace: {path: a.txt, search: "bottom\n", replace: "BOTTOM\n"}
    - bash: {command: "mv c.txt d.txt"}
- when: {agent: "0.3", turn: 1}
  call: {search_replace: {path: c.txt, search: "c\n", replace: "C\n"}}
- say: done
`).repo(abc)
	r.run(nil)
	reports := r.reports()
	wants(t, reports,
		"\noverlap: a.txt is changed by child 2, too\nanswer:",
		"\noverlap: a.txt is changed by child 1, too\noverlap: c.txt is changed by child 3, too\ncommands:",
		"\noverlap: c.txt is changed by child 2, too\n",
		"answer:")
	if strings.Contains(reports[3], "overlap") {
		t.Errorf("a reader's report tells of an overlap: %s", reports[3])
	}
}

// Who resolves a conflict is no writer of the reply.
func TestResolversAreNoOverlap(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "elsewhere", access: write}
    - delegate_task: {task: "one", access: write}
    - delegate_task: {task: "two", access: write}
    - delegate_task: {task: "below", access: write}
- when: {agent: "0.1", turn: 1}
  call: {search_replace: {path: c.txt, search: "c\n", replace: "C\n"}}
- when: {agent: "0.2", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "ONE\n"}}
- when: {agent: "0.3", turn: 1}
  call: {search_replace: {path: a.txt, search: "top\n", replace: "TWO\n"}}
- when: {agent: "0.4", turn: 1}
  call: {search_replace: {path: a.txt, search: "bottom\n", replace: "BOTTOM\n"}}
- when: {agent: "0.5", turn: 1}
  call: {bash: {command: "sed -i '/^[<=>]/d' a.txt"}}
- say: done
`).repo(abc)
	r.run(nil)
	wants(t, r.reports(),
		"merged · 1 file · +1 −1 · c.txt\nanswer:",
		"\noverlap: a.txt is changed by children 3 and 4, too\n",
		"\nresolved by 0.5: a.txt (content)\n",
		"\noverlap: a.txt is changed by children 2 and 3, too\n")
}

// A writer that says it is done and changed nothing is not believed, in place neither.
func TestWritersThatChangeNothingAreUnverified(t *testing.T) {
	t.Parallel()
	const idle = "· unverified: it was to change files and changed none\n"
	const yaml = `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "claims", access: write}
    - delegate_task: {task: "fails", access: write}
    - delegate_task: {task: "works", access: write}
    - delegate_task: {task: "talks", access: write}
    - delegate_task: {task: "reads"}
- when: {agent: ["0.1", "0.5"], turn: 1}
  call: {read_file: {path: a.txt}}
- when: {agent: "0.2", turn: 1}
  call: {search_replace: {path: a.txt, search: "nowhere", replace: "x"}}
- when: {agent: "0.3", turn: 1}
  call: {write_file: {path: n.txt, content: "n\n"}}
- say: all edits are made
`
	for _, inPlace := range []bool{false, true} {
		t.Run(fmt.Sprint("in place ", inPlace), func(t *testing.T) {
			r := newRig(t, yaml)
			if inPlace {
				r.write(abc)
			} else {
				r.repo(abc)
			}
			r.run(nil)
			reports := r.reports()
			wants(t, reports, idle, idle, "· completed · 2 turns\n", "· unverified: it made no tool call\n", "· completed · 2 turns\nanswer:")
		})
	}
}

// Without delegation the requests have no trace of it, and the files of roles are not read.
func TestOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	const yaml = `
- when: {turn: 1}
  call: {delegate_task: {task: x}}
- say: done
`
	trace := func(mode delegate.Mode) (found []string) {
		r := newRig(t, yaml)
		r.write(map[string]string{".agents/agents/bad.md": "no role", ".agents/agents/good.md": "---\ndescription: looks\n---\n"})
		r.run(func(o *orchestrator.Options) {
			o.Mode = mode
			o.ChildModels = []orchestrator.ChildModel{{Name: "openai/cheap", Client: o.Client}}
		})
		for _, word := range []string{"delegate", "subagent", "child", "role", "looks", "cheap"} {
			body := r.bodies("0")[0]
			// Messages have a role of their own, and the folder may be called anything.
			body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(`"role":`), nil), []byte(r.dir), nil)
			if bytes.Contains(body, []byte(word)) {
				found = append(found, word)
			}
		}
		if len(r.notices()) > 0 && strings.Contains(strings.Join(r.notices(), "\n"), "roles") {
			found = append(found, "notice")
		}
		return found
	}
	if found := trace(delegate.Off); len(found) > 0 {
		t.Errorf("the request holds %q", found)
	}
	if found := trace(delegate.TaskOnly); !slices.Contains(found, "delegate") || !slices.Contains(found, "looks") || !slices.Contains(found, "cheap") || !slices.Contains(found, "notice") {
		t.Errorf("with delegation the request holds only %q", found)
	}
}
