package orchestrator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
	"skein/worktree"
)

const twoLooks = `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "look twice"}}
- when: {agent: "0.1", turn: 1}
  call: {read_file: {path: a.txt, line_numbers: false}}
- when: {agent: "0.1", turn: 2}
  calls:
    - read_file: {path: a.txt, line_numbers: false}
    - bash: {command: "cat a.txt; echo x > cached && cat cached && git -c user.name=A -c user.email=a@example.invalid commit -q --allow-empty -m mine"}
    - write_file: {path: n.txt, content: "n\n"}
    - delegate_task: {task: "x", access: write}
    - delegate_task: {task: "look, too"}
- when: {agent: "0.1.1", turn: 1}
  call: {bash: {command: "cat a.txt cached; echo y > cached"}}
- say: done
`

// A reader with a snapshot sees the tree as it was, uncommitted work included, whatever the user
// does meanwhile; its commands may write in it, and nothing of that is left. A live reader sees
// what the user does, and its commands cannot write.
func TestReadersOfASnapshot(t *testing.T) {
	t.Parallel()
	needBox(t)
	for _, tt := range []struct {
		readers      orchestrator.Readers
		backend      string
		second, bash string
		own          string
	}{
		{orchestrator.Frozen, worktree.Fresh, "uncommitted\n", "exit=0\nuncommitted\nx\n", "exit=0\nuncommitted\nx\n"},
		{orchestrator.Frozen, worktree.Overlay, "uncommitted\n", "exit=0\nuncommitted\nx\n", "exit=0\nuncommitted\nx\n"},
		{orchestrator.Live, worktree.Fresh, "edited meanwhile\n", "exit=1\nedited meanwhile\n", "exit=1\nedited meanwhile\n"},
	} {
		t.Run(string(tt.readers)+" "+tt.backend, func(t *testing.T) {
			r := newRig(t, twoLooks).repo(abc)
			r.write(map[string]string{"a.txt": "uncommitted\n"})
			out := r.run(func(o *orchestrator.Options) {
				o.Readers, o.Copies, o.MaxDepth = tt.readers, tt.backend, 2
				watch := o.Watch
				o.Watch = func(e journal.Event) {
					watch(e)
					if e.Agent == "0.1" && e.Kind == "result" && len(r.results("0.1")) == 1 {
						r.write(map[string]string{"a.txt": "edited meanwhile\n"})
					}
				}
			})
			if out.Stop != agent.Completed {
				t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
			}
			res := r.results("0.1")
			if res[0].Text != "uncommitted\n" || res[1].Text != tt.second || !strings.HasPrefix(res[2].Text, tt.bash) {
				t.Errorf("it read %q, %q and %q; want the second %q and %q", res[0].Text, res[1].Text, res[2].Text, tt.second, tt.bash)
			}
			for _, i := range []int{3, 4} {
				if res[i].OK || !strings.Contains(res[i].Text, "you may read only") {
					t.Errorf("%s: %q, want it refused", res[i].Tool, res[i].Text)
				}
			}
			// A reader of its own has its tree, with what its commands wrote.
			if own := r.results("0.1.1")[0].Text; !strings.HasPrefix(own, tt.own) {
				t.Errorf("its reader read %q, want %q", own, tt.own)
			}
			if r.read("a.txt") != "edited meanwhile\n" {
				t.Errorf("a.txt = %q", r.read("a.txt"))
			}
			if _, err := os.Stat(filepath.Join(r.dir, "cached")); err == nil {
				t.Error("what a reader's command wrote is in the tree")
			}
			s := r.settled()
			if len(s) != 2 || !strings.Contains(s[1].Report, "· completed ·") || s[0].Change+s[1].Change != "" || s[0].Ref+s[1].Ref != "" || strings.Contains(r.git("log", "--all", "--format=%s"), "mine") {
				t.Errorf("settled %+v, want nothing of a change", s)
			}
			if left, err := filepath.Glob(filepath.Join(r.cache, "copies", "*")); err != nil || len(left) > 0 {
				t.Errorf("copies left: %v (%v)", left, err)
			}
			if body := string(r.bodies("0.1")[0]); !strings.Contains(body, `\n- branch: main\n`) {
				t.Errorf("the reader was told %s, want the branch", body)
			}
			copied, _, _ := of[journal.Copied](r)
			if frozen := len(copied) == 2; frozen != (tt.readers == orchestrator.Frozen) {
				t.Errorf("copied %+v", copied)
			}
		})
	}
}

// Where there are no snapshots readers work in the live tree, which is said once.
func TestSnapshotsNeedGit(t *testing.T) {
	t.Parallel()
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one"}}, {delegate_task: {task: "two"}}]
- say: done
`)
	r.run(func(o *orchestrator.Options) { o.Readers = orchestrator.Frozen })
	said := slices.DeleteFunc(r.notices(), func(n string) bool { return !strings.Contains(n, "readers work in the live tree") })
	if len(said) != 1 {
		t.Errorf("notices %q, want one of readers", r.notices())
	}
	if body := string(r.bodies("0.1")[0]); !strings.Contains(body, "you work in the live tree") {
		t.Errorf("the reader was told %s", body)
	}
}
