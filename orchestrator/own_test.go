package orchestrator_test

import (
	"context"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/orchestrator"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// own makes a tool of the caller's own that notes in whose workspace it ran.
func own(name string, effect scheduler.Effect, ran func(tools.Workspace)) tools.Tool {
	return tools.New(tools.Spec{Name: name, Description: "own"}, effect, func(_ context.Context, ws tools.Workspace, _ struct{}) (tools.Result, error) {
		ran(ws)
		return tools.Result{Text: "ran"}, nil
	})
}

// The gate decides on the caller's own tools by their effect, and no box makes them harmless.
func TestOwnToolsPassTheGate(t *testing.T) {
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - ask_inventory: {}
    - deploy: {}
    - delegate_task: {task: "try both"}
- when: {agent: "0.1", turn: 1}
  calls:
    - ask_inventory: {}
    - deploy: {}
- say: done
`)
	ran := map[string]int{}
	r.run(func(o *orchestrator.Options) {
		o.Access = gate.Auto
		o.Own = []tools.Tool{
			own("ask_inventory", scheduler.Read, func(tools.Workspace) { ran["read"]++ }),
			own("deploy", scheduler.Execute, func(tools.Workspace) { ran["execute"]++ }),
		}
	})
	if ran["read"] != 2 || ran["execute"] != 1 {
		t.Errorf("ran %v, want the reading tool twice, and the other one not by the reader", ran)
	}
	results, agents, _ := of[journal.Result](r)
	for i, res := range results {
		if agents[i] == "0.1" && res.Tool == "deploy" && res.OK {
			t.Errorf("a reader's deploy = %q, want a refusal", res.Text)
		}
	}
}

func TestNamesOfOwnTools(t *testing.T) {
	for _, names := range [][]string{{"read_file"}, {"delegate_task"}, {""}, {"a b"}, {"x", "x"}, {strings.Repeat("x", 65)}} {
		o := orchestrator.Options{Dir: t.TempDir(), Client: planner{}}
		for _, name := range names {
			o.Own = append(o.Own, own(name, scheduler.Read, func(tools.Workspace) {}))
		}
		if _, err := orchestrator.Run(t.Context(), o, "go"); err == nil || !strings.HasPrefix(err.Error(), "offer tool ") {
			t.Errorf("Run with tools %q = %v, want an error that names one", names, err)
		}
	}
}
