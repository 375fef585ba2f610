package orchestrator_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
)

// inits lists the children of this process that are inits of boxes.
func inits(t *testing.T) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(name, []byte("skein-init\x00")) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent, pid int
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
			t.Fatal(err)
		}
		if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		if parent == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// All who read one workspace at the same time have one box, and a /tmp each.
func TestReadersShareABox(t *testing.T) {
	needBox(t)
	const readers = 8
	// Each waits until all are there, so all are in the box at once. The first that sees it
	// tells the others: it may be gone when they look.
	script := "- when: {agent: \"0\", turn: 1}\n  calls:\n" + strings.Repeat("    - delegate_task: {task: look}\n", readers) + `
- when: {turn: 1}
  call: {bash: {command: "touch $GOCACHE/here-$$; until [ -e $GOCACHE/all ] || [ $(ls -d $GOCACHE/here-* | wc -l) = 8 ]; do sleep 0.01; done; touch $GOCACHE/all; stat -c %d $TMPDIR; readlink /proc/self/ns/pid"}}
- say: done
`
	r := newRig(t, script).repo(abc)
	most := 0
	out := r.run(func(o *orchestrator.Options) {
		o.Jobs = readers
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			if e.Kind == "result" && e.Agent != "0" {
				most = max(most, len(inits(t)))
			}
			watch(e)
		}
	})
	if out.Stop != agent.Completed {
		t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
	}
	if most != 1 {
		t.Errorf("%d boxes were open at once, want 1 for all readers", most)
	}
	tmps, spaces := map[string]bool{}, map[string]bool{}
	for i := 1; i <= readers; i++ {
		for _, res := range r.results(fmt.Sprintf("0.%d", i)) {
			lines := strings.Split(res.Text, "\n")
			if !res.OK || len(lines) < 3 {
				t.Fatalf("reader %d: %q", i, res.Text)
			}
			tmps[lines[1]], spaces[lines[2]] = true, true
		}
	}
	if len(tmps) != readers || len(spaces) != 1 {
		t.Errorf("%d readers had their TMPDIRs on %v and the process namespaces %v", readers, tmps, spaces)
	}
	if left := inits(t); len(left) != 0 {
		t.Errorf("boxes are left: %v", left)
	}
}

// A reader does not see what others have in /tmp, and one that ends takes nothing of theirs along.
// What they share is the cache of builds.
func TestReadersEndApart(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "short"}}, {delegate_task: {task: "long"}}]
- when: {agent: "0.1", turn: 1}
  call: {bash: {command: "touch /tmp/here; echo $$ > $GOCACHE/pid; mv $GOCACHE/pid $GOCACHE/first; until [ -e $GOCACHE/seen ]; do sleep 0.01; done"}}
- when: {agent: "0.2", turn: 1}
  call: {bash: {command: "until [ -e $GOCACHE/first ]; do sleep 0.01; done; touch /tmp/mine $GOCACHE/seen; while [ -e /proc/$(cat $GOCACHE/first) ]; do sleep 0.01; done; cd /tmp; echo h*ere m*ine"}}
- say: done
`).repo(abc)
	r.run(nil)
	res := r.results("0.2")
	if len(res) != 1 || res[0].Text != "exit=0\nh*ere mine\n" {
		t.Errorf("results of the long reader: %+v", res[0])
	}
}

// A box whose init was killed is replaced, once for all that use it.
func TestReadersBoxIsReplaced(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "a"}}, {delegate_task: {task: "b"}}]
- when: {agent: "0.1", turn: 1}
  call: {bash: {command: "until [ -e $GOCACHE/second ]; do sleep 0.01; done; echo first"}}
- when: {agent: "0.2", turn: 1}
  call: {bash: {command: "touch $GOCACHE/second; sleep 60"}}
- when: {turn: 2}
  call: {bash: {command: "echo next"}}
- when: {turn: 3}
  call: {bash: {command: "echo last"}}
- say: done
`).repo(abc)
	killed := 0
	r.run(func(o *orchestrator.Options) {
		o.Jobs = 2
		watch := o.Watch
		o.Watch = func(e journal.Event) {
			watch(e)
			if e.Kind == "result" && e.Agent == "0.1" && killed == 0 {
				for _, pid := range inits(t) {
					killed++
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	})
	if killed != 1 {
		t.Fatalf("%d inits were killed, want 1", killed)
	}
	for agent, want := range map[string]string{"0.1": "exit=0\nfirst\n", "0.2": "the box has ended"} {
		res := r.results(agent)
		if len(res) != 3 || !strings.Contains(res[0].Text, want) {
			t.Fatalf("results of %s: %+v", agent, res)
		}
		// The next command may still find the end of the box, the one after that not.
		if text := res[2].Text; text != "exit=0\nlast\n" {
			t.Errorf("last result of %s = %q", agent, text)
		}
	}
}
