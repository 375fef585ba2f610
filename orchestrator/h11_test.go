package orchestrator_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"skein/agent/journal"
	"skein/delegate"
	"skein/orchestrator"
)

// portTask is one task in four ways: read the port of one service among sixty, and have it
// set in another file. A child does what it is asked by whoever it sees asking: the user's
// "read services.ini" too, unless the file's text stands there already.
const portTask = `
- when: {agent: "0", turn: 1}
  calls:
    - read_file: {path: services.ini}
    - read_file: {path: deploy/README.md}
- when: {agent: "0", turn: 2, conversation: "single agent"}
  call: {search_replace: {path: deploy/api.yaml, search: "port: 8000", replace: "port: 8143"}}
- when: {agent: "0", turn: 2}
  call: {delegate_task: {task: "In deploy/api.yaml set the port from 8000 to 8143, the port of api. Answer with the new port.", title: "set the port", access: write}}
- when: {agent: "0", turn: 3}
  call: {read_file: {path: deploy/api.yaml}}
- when: {agent: "0.1", turn: 1, conversation: "name = service-59"}
  call: &look {read_file: {path: deploy/api.yaml}}
- when: {agent: "0.1", turn: 1, conversation: "Read services.ini"}
  call: {read_file: {path: services.ini}}
- when: {agent: "0.1", turn: 1}
  call: *look
- when: {agent: "0.1", result: "port: 8000"}
  call: {search_replace: {path: deploy/api.yaml, search: "port: 8000", replace: "port: 8143"}}
- when: {agent: "0.1", turn: 2}
  call: *look
- say: "8143"
`

// A wayCost is what a way of doing the task cost.
type wayCost struct {
	delegations, rereads int   // of services.ini, by the child
	parent, child        int64 // input tokens
	first, hit           int64 // of the child's first request
	share                float64
}

// The figures of the delegation lab: what each context mode costs, and which of them has the
// child read again what its parent has read.
func TestDelegationModesCost(t *testing.T) {
	needBox(t)
	got := map[delegate.Mode]wayCost{}
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "mode\tdelegations\tre-reads\tparent in\tchild in\tchild's first\thit\tshare\t")
	for _, mode := range []delegate.Mode{delegate.Off, delegate.Full, delegate.NoTools, delegate.TaskOnly} {
		c := portTaskIn(t, mode)
		got[mode] = c
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t\n", mode, c.delegations, c.rereads, c.parent, c.child, c.first, c.hit, 100*c.share)
	}
	_ = w.Flush() // to memory
	t.Logf("\n%s", table.String())

	full, noTools, taskOnly := got[delegate.Full], got[delegate.NoTools], got[delegate.TaskOnly]
	if got[delegate.Off].delegations != 0 || full.delegations != 1 || noTools.delegations != 1 || taskOnly.delegations != 1 {
		t.Error("want one delegation in each mode, and none by a single agent")
	}
	if full.rereads != 0 || full.share < 0.95 {
		t.Errorf("full: %d re-reads and %.1f %% of the first request hit, want none and at least 95 %%", full.rereads, 100*full.share)
	}
	if noTools.rereads != 1 || taskOnly.rereads != 0 {
		t.Errorf("re-reads: no-tools %d, task-only %d, want 1 and 0", noTools.rereads, taskOnly.rereads)
	}
	if 2*taskOnly.child > full.child || 2*taskOnly.child > noTools.child {
		t.Errorf("the child's input is %d in task-only, want at most half of %d in full and of %d in no-tools", taskOnly.child, full.child, noTools.child)
	}
}

// portTaskIn does the task and checks what must be so in every mode.
func portTaskIn(t *testing.T, mode delegate.Mode) (c wayCost) {
	t.Helper()
	var services strings.Builder
	for i := range 60 {
		name, port := fmt.Sprintf("service-%d", i), 8200+i
		if i == 30 {
			name, port = "api", 8143
		}
		fmt.Fprintf(&services, "[%s]\nname = %[1]s\nhost = %[1]s.internal.example\nport = %d\nteam = platform\n\n", name, port)
	}
	r := newRig(t, portTask).repo(map[string]string{
		"services.ini": services.String(), "deploy/api.yaml": "name: api\nport: 8000\n",
		"deploy/README.md": strings.Repeat("A file for each service; its port is the one that services.ini names.\n", 50),
	})
	r.ask = "Read services.ini and find the port of api. Have deploy/api.yaml set to it by a subagent; then read that file yourself, and answer with the port alone."
	if mode == delegate.Off {
		r.ask = "You are a single agent. Read services.ini and set deploy/api.yaml to the port of api; then read that file, and answer with the port alone."
	}
	out := r.run(func(o *orchestrator.Options) {
		o.Mode = mode
	})
	if text := r.read("deploy/api.yaml"); out.Answer != "8143" || text != "name: api\nport: 8143\n" {
		t.Errorf("%s: answer %q, file %q", mode, out.Answer, text)
	}
	calls, agents, _ := of[journal.Call](r)
	checked := false
	for i, call := range calls {
		switch ofServices := strings.Contains(call.Args, "services.ini"); {
		case call.Tool == delegate.Name:
			c.delegations++
		case agents[i] != "0" && ofServices:
			c.rereads++
		case agents[i] == "0" && call.Tool == "read_file" && !ofServices:
			checked = true
		}
	}
	if !checked {
		t.Errorf("%s: the parent did not read the file again", mode)
	}
	for _, q := range r.asked {
		if q.Hit%64 != 0 {
			t.Errorf("%s: a request of %s hit %d tokens, want a multiple of 64", mode, q.Agent, q.Hit)
		}
		if q.Agent == "0" {
			c.parent += q.Input
			continue
		}
		if q.Turn == 1 {
			c.first, c.hit, c.share = q.Input, q.Hit, float64(q.Hit)/float64(q.Input)
		}
		c.child += q.Input
	}
	return c
}
