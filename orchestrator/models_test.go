package orchestrator_test

import (
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/agent/model/anthropic"
	"skein/agent/model/script"
	"skein/delegate"
	"skein/orchestrator"
)

// second serves another scripted model, which speaks another dialect than the rig's.
func second(t *testing.T, yaml string) (model.Client, *script.Server) {
	t.Helper()
	s, err := script.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	server, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := anthropic.New(anthropic.Options{BaseURL: server.URL(), Model: "other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return client, server
}

// A child of another model is told its parent's conversation in its own dialect; its own
// children have its model, unless they are given another. Each is paid at its own price.
func TestChildOfAnotherModel(t *testing.T) {
	t.Parallel()
	client, server := second(t, `
- when: {task: "look", conversation: "delegate_task"}
  usage: {input: 3000, output: 10}
  say: found
- when: {task: "look"}
  usage: {input: 2000, output: 100}
  call: {delegate_task: {task: "look deeper"}}
`)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  usage: {input: 1000, output: 10}
  call: {read_file: {path: a.txt}}
- when: {agent: "0", turn: 2}
  usage: {input: 1000, output: 10}
  calls:
    - delegate_task: {task: "look", model: other/one}
    - delegate_task: {task: "stay"}
    - delegate_task: {task: "no", model: other/two}
- usage: {input: 1000, output: 10}
  say: done
`).repo(abc)
	costs := func(in, out float64) *model.Price {
		return &model.Price{Input: in, CacheRead: in, CacheWrite: in, Output: out}
	}
	r.run(func(o *orchestrator.Options) {
		o.Mode, o.MaxDepth, o.Price = delegate.Full, 2, costs(1, 0)
		o.ChildModels = []orchestrator.ChildModel{{Name: "other/one", Client: client, Price: costs(0, 1000), MaxTokens: 777}}
	})
	wants(t, r.reports(), "· completed · 2 turns", "· completed · 1 turn", `model is "other/two", not one of: other/one`)
	asked := server.Requests()
	if len(asked) != 3 {
		t.Fatalf("the other model was asked %d times, want 3: for the child, for its child, for the child", len(asked))
	}
	for i, q := range asked {
		body := string(q.Body)
		if !strings.Contains(body, `"max_tokens":777`) || !strings.Contains(body, `"tool_use_id"`) || !strings.Contains(body, `"input_schema"`) {
			t.Errorf("request %d is not of the other dialect with its parent's results: %s", i+1, body)
		}
	}
	if queued, _, _ := of[journal.AgentQueued](r); queued[0].Model != "other/one" || queued[1].Model != "" {
		t.Errorf("queued %+v", queued)
	}
	ended, _, _ := of[journal.RunEnded](r)
	// Four requests of the run's model cost by their input, three of the other by their output.
	var want float64
	for _, q := range r.asked {
		want += float64(q.Input) / 1e6
	}
	for _, q := range asked {
		want += float64(q.Output) * 1000 / 1e6
	}
	if c := ended[0].Cost; c == nil || *c-want > 1e-9 || want-*c > 1e-9 || len(r.asked) != 4 {
		t.Errorf("cost = %v after %d requests, want %v", c, len(r.asked), want)
	}
}

// A limit in dollars needs the prices of all models; without one the cost of what they did is
// not known.
func TestPricesOfChildModels(t *testing.T) {
	t.Parallel()
	client, _ := second(t, `[{say: done}]`)
	price := &model.Price{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 1}
	o := orchestrator.Options{Dir: t.TempDir(), Client: client, Price: price, Limits: orchestrator.Limits{BudgetUSD: 1}, ChildModels: []orchestrator.ChildModel{{Name: "other/one", Client: client}}}
	if _, err := orchestrator.Run(t.Context(), o, "go"); err == nil || err.Error() != "limit the cost of other/one: its prices are unknown" {
		t.Errorf("Run = %v, want an error about other/one", err)
	}
	o.BudgetUSD, o.ChildModels = 0, append(o.ChildModels, o.ChildModels[0])
	if _, err := orchestrator.Run(t.Context(), o, "go"); err == nil || !strings.Contains(err.Error(), `offer model "other/one" to children`) {
		t.Errorf("Run with a name twice = %v, want an error", err)
	}
	for _, asks := range []bool{true, false} {
		yaml := `[{say: done}]`
		if asks {
			yaml = `[{when: {agent: "0", turn: 1}, call: {delegate_task: {task: x, model: other/one}}}, {say: done}]`
		}
		r := newRig(t, yaml)
		r.run(func(o *orchestrator.Options) {
			o.Price, o.ChildModels = price, []orchestrator.ChildModel{{Name: "other/one", Client: client}}
		})
		if ended, _, _ := of[journal.RunEnded](r); (ended[0].Cost == nil) != asks {
			t.Errorf("cost = %v where the unpriced model was asked: %v", ended[0].Cost, asks)
		}
	}
}
