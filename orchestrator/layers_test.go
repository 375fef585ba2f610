package orchestrator_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/orchestrator"
	"skein/worktree"
)

// eachWay runs a test with copies made in each way.
func eachWay(t *testing.T, test func(t *testing.T, way string)) {
	t.Helper()
	needBox(t)
	for _, way := range []string{worktree.Overlay, worktree.Fresh} {
		t.Run(way, func(t *testing.T) { test(t, way) })
	}
}

// Writers of writers branch from the work of theirs and merge into it, in request order,
// by commands and by file tools, files deleted and folders renamed among them; readers of a
// writer see its work.
func TestWritersOfWriters(t *testing.T) {
	eachWay(t, func(t *testing.T, way string) {
		r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  calls:
    - bash: {command: "echo by 0.1 >>sub/log && rm sub/gone && mv dir moved"}
    - write_file: {path: sub/tool.txt, content: "by a tool\n"}
- when: {agent: "0.1", turn: 2}
  calls:
    - delegate_task: {task: "two", access: write}
    - delegate_task: {task: "three", access: write}
    - delegate_task: {task: "look"}
- when: {agent: "0.1.1", turn: 1}
  calls:
    - bash: {command: "cat sub/log sub/tool.txt moved/x && ! ls sub/gone && git status --short && echo by 0.1.1 >>sub/log && echo a >moved/x"}
- when: {agent: "0.1.1", turn: 2}
  call: {delegate_task: {task: "four", access: write}}
- when: {agent: "0.1.1.1", turn: 1}
  calls:
    - bash: {command: "cat sub/log moved/x && rm sub/tool.txt && mkdir sub/tool.txt && echo deep >sub/tool.txt/deep"}
    - read_file: {path: moved/x}
- when: {agent: "0.1.1", turn: 3}
  call: {bash: {command: "cat sub/tool.txt/deep"}}
- when: {agent: "0.1.2", turn: 1}
  call: {bash: {command: "cat sub/tool.txt && seq 1 3 >moved/y"}}
- when: {agent: "0.1.3", turn: 1}
  calls:
    - bash: {command: "cat sub/log sub/tool.txt; git status --short; ! touch sub/x"}
    - read_file: {path: sub/tool.txt}
- when: {agent: "0.1", turn: 3}
  call: {bash: {command: "git status --short && cat sub/log moved/x moved/y sub/tool.txt/deep"}}
- say: done
`).repo(map[string]string{"sub/log": "first\n", "sub/gone": "gone\n", "dir/x": "x\n", "dir/y": "y\n", "a": "a\n"})
		r.write(map[string]string{"a": "uncommitted\n"})
		r.run(func(o *orchestrator.Options) { o.MaxDepth, o.Copies = 3, way })
		copied, agents, _ := of[journal.Copied](r)
		for i, c := range copied {
			if c.Backend != way || c.Why != "" {
				t.Errorf("copy of %s by %q (%s), want %s", agents[i], c.Backend, c.Why, way)
			}
		}
		if len(copied) != 4 {
			t.Errorf("%d copies, want 4", len(copied))
		}
		for _, agent := range []string{"0.1", "0.1.1", "0.1.1.1", "0.1.2", "0.1.3"} {
			for i, res := range r.results(agent) {
				if !res.OK {
					t.Errorf("%s: call %d = %q", agent, i+1, res.Text)
				}
			}
		}
		want := []string{
			`a -rw-r--r-- "uncommitted\n"`, `moved/x -rw-r--r-- "a\n"`, `moved/y -rw-r--r-- "1\n2\n3\n"`,
			`sub/log -rw-r--r-- "first\nby 0.1\nby 0.1.1\n"`, `sub/tool.txt/deep -rw-r--r-- "deep\n"`,
		}
		if got := r.tree(); got != strings.Join(want, "\n") {
			t.Errorf("tree = %s\nwant %s", got, strings.Join(want, "\n"))
		}
		if status := r.git("status", "--short"); !strings.Contains(status, " M a\n") {
			t.Errorf("git status = %q, want what was uncommitted so", status)
		}
	})
}

// The box of a writer whose init was killed is replaced: its files are still there, for
// commands and for file tools.
func TestWritersBoxIsReplaced(t *testing.T) {
	eachWay(t, func(t *testing.T, way string) {
		r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {bash: {command: "echo one >one; grep NSpid /proc/self/status; echo $PPID"}}
- when: {agent: "0.1", turn: 2}
  call: {bash: {command: "echo two >two"}}
- when: {agent: "0.1", turn: 3}
  calls:
    - read_file: {path: one}
    - write_file: {path: three, content: "three\n"}
    - bash: {command: "cat one three"}
- say: done
`).repo(abc)
		killed := 0
		r.run(func(o *orchestrator.Options) {
			o.Copies = way
			watch := o.Watch
			o.Watch = func(e journal.Event) {
				watch(e)
				if e.Kind == "result" && e.Agent == "0.1" && killed == 0 {
					for _, pid := range inits(t) {
						p, err := os.FindProcess(pid)
						if err == nil && p.Kill() == nil {
							killed++
						}
					}
				}
			}
		})
		if killed != 1 {
			t.Fatalf("%d inits were killed, want 1", killed)
		}
		for i, res := range r.results("0.1") {
			if res.OK != (i != 1) {
				t.Errorf("call %d: ok = %v, text %q", i+1, res.OK, res.Text)
			}
		}
		if got := r.read("one") + r.read("three"); got != "one\nthree\n" {
			t.Errorf("merged = %q, want what was written before and after", got)
		}
	})
}

// Where a copy cannot be made of layers it is made in the other way, and the journal says why.
func TestCopyIsFreshWhereLayersCannotBe(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run("sandbox off "+strconv.FormatBool(off), func(t *testing.T) {
			r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: new, content: "new\n"}}
- say: done
`).repo(abc)
			want := "the sandbox is off"
			if !off {
				needBox(t)
				r.write(map[string]string{"out": "out\n"})
				r.git("add", "out")
				r.git("commit", "-qm", "out")
				r.git("update-index", "--skip-worktree", "out")
				if err := os.Remove(r.dir + "/out"); err != nil {
					t.Fatal(err)
				}
				want = "not all files of the tree are checked out"
			}
			r.run(func(o *orchestrator.Options) { o.NoSandbox = off })
			copied, _, _ := of[journal.Copied](r)
			if len(copied) != 1 || copied[0].Backend != worktree.Fresh || !strings.Contains(copied[0].Why, want) {
				t.Errorf("copied = %+v, want a fresh one because %s", copied, want)
			}
			if got := r.read("new"); got != "new\n" {
				t.Errorf("new = %q after the merge", got)
			}
		})
	}
}
