package orchestrator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
)

// results gives what an agent's calls brought, in order.
func (r *rig) results(agent string) []*journal.Result {
	r.t.Helper()
	all, agents, _ := of[journal.Result](r)
	var list []*journal.Result
	for i, res := range all {
		if agents[i] == agent {
			list = append(list, res)
		}
	}
	return list
}

func (r *rig) notices() (texts []string) {
	r.t.Helper()
	all, _, _ := of[journal.Notice](r)
	for _, n := range all {
		texts = append(texts, n.Text)
	}
	return texts
}

// A writer's copy is seen at its parent's path: what it writes there, by an absolute path
// too, are its own files, and git works on them.
func TestWriterSeesItsCopyAtTheParentsPath(t *testing.T) {
	needBox(t)
	r := newRig(t, "").repo(map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	r.write(map[string]string{"a.txt": "uncommitted\n"})
	r.script = `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  calls:
    - bash: {command: "pwd && cat a.txt && git status --short && git log --format=%s"}
    - bash: {command: "echo mine > ` + r.dir + `/abs.txt && git add abs.txt && git commit -qm c && git log --format=%s | head -1"}
    - bash: {command: "git push"}
    - bash: {command: "mkdir .skein && echo x > .skein/y; ls /tmp; touch $HOME/x && echo home"}
- when: {agent: "0.1", turn: 2}
  latency: 300ms
  say: done
- say: done
`
	var during string
	r.run(func(o *orchestrator.Options) {
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Agent == "0.1" && e.Kind == "result" {
				if _, err := os.Stat(filepath.Join(r.dir, "abs.txt")); err == nil {
					during = "the file was in the user's tree before the merge"
				}
			}
		}
	})
	if during != "" {
		t.Error(during)
	}
	res := r.results("0.1")
	if len(res) != 4 {
		t.Fatalf("%d results, want 4", len(res))
	}
	if text := res[0].Text; !res[0].OK || !strings.Contains(text, r.dir+"\nuncommitted\n") || !strings.Contains(text, "first") {
		t.Errorf("first look = %q, want the parent's path, its uncommitted work, a clean status and the history", text)
	}
	if text := res[1].Text; !res[1].OK || !strings.HasSuffix(strings.TrimSpace(text), "\nc") {
		t.Errorf("commit in the copy = %q", text)
	}
	if res[2].OK {
		t.Errorf("push = %q, want a failure", res[2].Text)
	}
	if text := r.read("abs.txt"); text != "mine\n" {
		t.Errorf("abs.txt = %q after the merge", text)
	}
	if status := r.git("status", "--short"); status != " M a.txt\n?? abs.txt\n" {
		t.Errorf("status after the run = %q", status)
	}
	if config := r.read(".git/config"); !strings.Contains(config, "[core]") {
		t.Errorf("the user's git configuration is %q", config)
	}
}

func TestReadersCommandsCannotWrite(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "read"}}
- when: {agent: "0.1", turn: 1}
  calls:
    - bash: {command: "cat a.txt"}
    - bash: {command: "echo x > a.txt"}
    - bash: {command: "chmod 777 a.txt"}
    - bash: {command: "git commit --allow-empty -m x"}
    - bash: {command: "touch new.txt"}
    - write_file: {path: new.txt, content: x}
    - bash: {command: "cat .skein/sessions/*/journal.jsonl"}
- say: done
`).repo(abc)
	before := r.tree()
	r.run(nil)
	for i, res := range r.results("0.1") {
		if res.OK != (i == 0) {
			t.Errorf("call %d: ok = %v, text %q", i+1, res.OK, res.Text)
		}
	}
	if r.tree() != before {
		t.Error("a reader changed the tree")
	}
	if head := r.git("log", "--format=%s"); head != "first\n" {
		t.Errorf("log = %q", head)
	}
}

// In a subdirectory of a repository children work in the same subdirectory.
func TestSubdirectoryOfARepository(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  calls:
    - read_file: {path: b.txt}
    - bash: {command: "echo new > n.txt; cat ../a.txt; pwd"}
    - read_file: {path: ../a.txt}
- say: done
`).repo(map[string]string{"a.txt": "top\n", "sub/b.txt": "b\n"})
	sub := filepath.Join(r.dir, "sub")
	r.run(func(o *orchestrator.Options) { o.Dir = sub })
	res := r.results("0.1")
	if len(res) != 3 || !res[0].OK || !strings.Contains(res[1].Text, "top\n"+sub) || res[2].OK {
		t.Fatalf("results %+v", res)
	}
	if text := r.read("sub/n.txt"); text != "new\n" {
		t.Errorf("sub/n.txt = %q", text)
	}
}

func TestInPlaceWithoutARepository(t *testing.T) {
	needBox(t)
	r := newRig(t, threeQuickWriters)
	r.write(abc)
	out := r.run(nil)
	if out.Stop != agent.Completed {
		t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
	}
	if text := r.read("a.txt"); !strings.HasPrefix(text, "TOP\n") || !strings.HasSuffix(text, "BOTTOM\n") || r.read("b.txt") != "new\n" {
		t.Errorf("a.txt = %q", text)
	}
	var said int
	for _, n := range r.notices() {
		if strings.Contains(n, "one after another in place") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times that writers work in place: %q", said, r.notices())
	}
	s := spans(r.events)
	if s["0.2"][0].Before(s["0.1"][1]) || s["0.3"][0].Before(s["0.2"][1]) {
		t.Errorf("writers in place overlap: %v", s)
	}
}

// Without a box readers lose bash and the rest goes on; nothing runs unboxed.
func TestNoBox(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - bash: {command: "touch parent.txt"}
    - delegate_task: {task: "read"}
    - delegate_task: {task: "write", access: write}
- when: {agent: "0.1", turn: 1}
  calls: [{bash: {command: "true"}}, {read_file: {path: a.txt}}]
- when: {agent: "0.2", turn: 1}
  calls: [{bash: {command: "true"}}, {write_file: {path: n.txt, content: "n\n"}}]
- say: done
`).repo(abc)
	r.run(func(o *orchestrator.Options) {
		o.Probe = func(context.Context, bool) error { return errors.New("switched off") }
	})
	if res := r.results("0"); res[0].OK || !strings.Contains(res[0].Text, "--sandbox off") {
		t.Errorf("parent's command = %+v", res[0])
	}
	for _, child := range []string{"0.1", "0.2"} {
		if res := r.results(child); len(res) != 2 || res[0].OK || !res[1].OK {
			t.Errorf("results of %s: %+v", child, res)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "parent.txt")); err == nil {
		t.Error("a command ran without a box")
	}
	if r.read("n.txt") != "n\n" {
		t.Error("the writer's change is missing")
	}
	if n := r.notices(); len(n) != 1 {
		t.Errorf("notices %q, want one", n)
	}
}

// With the sandbox off a writer's copy is at its own path, and file tools map its parent's.
func TestSandboxOff(t *testing.T) {
	r := newRig(t, "").repo(abc)
	r.script = `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "write", access: write}}
- when: {agent: "0.1", turn: 1}
  calls:
    - bash: {command: "echo n > n.txt && git status --short && git log --format=%s"}
    - write_file: {path: "` + r.dir + `/m.txt", content: "m\n"}
- say: done
`
	r.run(func(o *orchestrator.Options) { o.NoSandbox = true })
	res := r.results("0.1")
	if len(res) != 2 || !res[0].OK || !strings.Contains(res[0].Text, "?? n.txt") || !strings.Contains(res[0].Text, "first") || !res[1].OK {
		t.Fatalf("results %+v", res)
	}
	if r.read("n.txt") != "n\n" || r.read("m.txt") != "m\n" {
		t.Error("the writer's files are missing")
	}
}

// A git directory that a command makes in the user's own tree is told of: git on the host
// would obey what its configuration says.
func TestPlantedGitDirectoriesAreTold(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {turn: 1}
  call: {bash: {command: "git init -q . && git config filter.x.clean 'touch /tmp/x'"}}
- say: done
`)
	r.write(abc)
	r.run(nil)
	var told int
	for _, n := range r.notices() {
		if strings.Contains(n, "commands made what programs outside of boxes obey") && strings.Contains(n, ".git") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %q", told, r.notices())
	}
}
