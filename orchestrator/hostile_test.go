package orchestrator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent/journal"
	"skein/orchestrator"
	"skein/tools/gate"
)

// A child whose model never answers ends with its time, whatever else the machine has to do: time
// is virtual. What it changed is kept, and its stage goes on.
func TestChildThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&rig{t: t, dir: t.TempDir(), cache: t.TempDir()}).repo(abc)
		hangs := &grove{turns: []reply{{{tool: "write_file", args: `{"path":"half.txt","content":"half\n"}`}}}, end: "hangs"}
		sibling := &grove{turns: []reply{looks("a.txt")}}
		out, err := orchestrator.Run(t.Context(), orchestrator.Options{
			Dir: r.dir, Client: plant(&grove{turns: []reply{{{writes: true, child: hangs}, {child: sibling}}}}),
			Access: gate.Auto, Boxes: orchestrator.Boxes{NoSandbox: true}, Cache: r.cache, Session: "s1", Limits: orchestrator.Limits{ChildTime: time.Minute},
			Watch: func(e journal.Event) { r.events = append(r.events, e) },
		}, "go")
		settled := r.settled()
		if err != nil || out.Answer != "done 0" || len(settled) != 2 {
			t.Fatalf("Run = %+v, %v with %d children settled", out, err, len(settled))
		}
		for _, want := range []string{"timeout (stopped at its limit of 1m0s)", "kept · 1 file"} {
			if !strings.Contains(settled[0].Report, want) {
				t.Errorf("report without %q:\n%s", want, settled[0].Report)
			}
		}
		if !strings.Contains(settled[1].Report, "· completed ·") || strings.Contains(r.tree(), "half.txt") {
			t.Errorf("its sibling: %s\nthe tree: %s", settled[1].Report, r.tree())
		}
	})
}

// A child that does what it should not ends as it is specified, and its siblings and its parent
// go on.
func TestHostileChildren(t *testing.T) {
	needBox(t)
	for _, test := range []struct {
		name, child string // the replies of 0.1
		access      string
		args        string // further arguments of the delegation
		edit        func(*orchestrator.Options)
		want        []string // in the report
		tree        map[string]string
		unasked     bool
	}{
		{
			name: "writes to the absolute path of its parent", access: "write",
			child: `
- when: {agent: "0.1", turn: 1}
  calls:
    - write_file: {path: "DIR/by-tool.txt", content: "x\n"}
    - bash: {command: "echo x > DIR/by-command.txt; echo changed > DIR/a.txt"}
- when: {agent: "0.1"}
  status: 400
`,
			want: []string{"model-error", "kept · 3 files", "nothing of this change is in the tree"},
			tree: map[string]string{"by-tool.txt": "", "by-command.txt": "", "a.txt": abc["a.txt"]},
		},
		{
			name: "claims edits that it did not make", access: "write",
			child: `
- when: {agent: "0.1", turn: 1}
  call: {read_file: {path: a.txt}}
- when: {agent: "0.1"}
  say: "I rewrote a.txt, all tests pass"
`,
			want: []string{"completed", "unverified", "no changes"},
		},
		{
			name: "delegates at the depth limit", access: "read",
			child: `
- when: {agent: "0.1", turn: 1}
  call: {delegate_task: {task: "do my work"}}
- when: {agent: "0.1", result: "Delegation depth limit reached: a subagent cannot delegate. Do the task yourself."}
  say: "I was told to do it myself"
`,
			want: []string{"completed", "denied: 1", "I was told to do it myself"},
		},
		{
			name: "answers without a call", access: "read",
			child: `
- when: {agent: "0.1"}
  say: "done"
`,
			want: []string{"completed", "unverified: it made no tool call"},
		},
		{
			name: "never stops calling", access: "read",
			child: `
- when: {agent: "0.1", user: "(?i)limit"}
  say: "so far I have looked"
- when: {agent: "0.1"}
  call: {read_file: {path: a.txt}}
`,
			edit: func(o *orchestrator.Options) { o.ChildTurns = 4 },
			want: []string{"max-turns", "so far I have looked"},
		},
		{
			name: "asks for what nobody approves", access: "write",
			child: `
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: asked.txt, content: "x\n"}}
- when: {agent: "0.1"}
  say: "it was not allowed"
`,
			edit:    func(o *orchestrator.Options) { o.Access, o.Each = gate.Confirm, true },
			want:    []string{"denied: 1", "nobody could be asked"},
			tree:    map[string]string{"asked.txt": ""},
			unasked: true,
		},
		{
			name: "changes files outside of its paths", access: "write", args: `, paths: ["a.txt"]`,
			child: `
- when: {agent: "0.1", turn: 1}
  calls:
    - search_replace: {path: a.txt, search: "top", replace: "TOP"}
    - write_file: {path: b/c.txt, content: "x\n"}
- when: {agent: "0.1"}
  say: "done"
`,
			want: []string{"kept", "b/c.txt"},
			tree: map[string]string{"a.txt": abc["a.txt"], "b/c.txt": ""},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "")
			r.script = strings.ReplaceAll(`
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "the task", access: `+test.access+test.args+`}
    - delegate_task: {task: "a sibling"}
- when: {agent: "0.2", turn: 1}
  call: {read_file: {path: a.txt}}
`+test.child+`
- say: done
`, "DIR", r.dir)
			r.repo(abc)
			out := r.run(test.edit)
			settled := r.settled()
			if len(settled) != 2 || out.Answer != "done" {
				t.Fatalf("%d children settled, and the parent says %q", len(settled), out.Answer)
			}
			for _, want := range test.want {
				if !strings.Contains(settled[0].Report, want) {
					t.Errorf("report without %q:\n%s", want, settled[0].Report)
				}
			}
			if sibling := settled[1].Report; !strings.Contains(sibling, "· completed ·") {
				t.Errorf("its sibling: %s", sibling)
			}
			for name, want := range test.tree {
				got, err := os.ReadFile(filepath.Join(r.dir, name))
				if string(got) != want || (want == "") != os.IsNotExist(err) {
					t.Errorf("%s = %q, %v in the user's tree, want %q", name, got, err, want)
				}
			}
			if out.Unasked != test.unasked {
				t.Errorf("unasked = %v, want %v", out.Unasked, test.unasked)
			}
		})
	}
}
