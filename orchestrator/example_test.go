package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/orchestrator"
	"skein/scheduler"
	"skein/tools"
)

// planner is a model: here a few lines of Go, elsewhere anything that answers.
type planner struct{}

func (planner) Dialect() string                                      { return "planner" }
func (planner) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m) }
func (planner) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(ts) }

func (p planner) Exchange(_ context.Context, req model.Request) (r model.Reply, err error) {
	last := req.Messages[len(req.Messages)-1].Text
	r.Message, r.Finish = model.Message{Role: model.Assistant, Text: last}, model.FinishStop
	call := func(tool, args string) {
		r.Message.Calls = append(r.Message.Calls, model.ToolCall{ID: fmt.Sprint(len(r.Message.Calls)), Name: tool, Args: args})
	}
	switch {
	case req.Origin.Agent == "0" && req.Origin.Turn == 1: // the parent: two children at once
		call("delegate_task", `{"task":"find the port of api"}`)
		call("delegate_task", `{"task":"find the port of web"}`)
	case req.Origin.Agent == "0":
		r.Message.Text = "both ports are known"
	case req.Origin.Turn == 1: // a child: one question to the inventory
		call("inventory", fmt.Sprintf(`{"service":%q}`, last[strings.LastIndex(last, " ")+1:]))
	}
	r.Message.Raw, err = p.Encode(r.Message)
	return r, err
}

// Another program runs a tree of agents with a model and a tool of its own. The reports of
// children come in the order in which they were asked for.
func Example() {
	ports := map[string]int{"api": 8143, "web": 8080}
	type question struct {
		Service string `json:"service"`
	}
	lookup := func(_ context.Context, _ tools.Workspace, q question) (tools.Result, error) {
		return tools.Result{Text: fmt.Sprintf("%s listens on %d", q.Service, ports[q.Service])}, nil
	}
	inventory := tools.New(tools.Spec{Name: "inventory", Description: "The port of a service."}, scheduler.Read, lookup)

	dir, _ := os.MkdirTemp("", "example")
	defer func() { _ = os.RemoveAll(dir) }()
	out, err := orchestrator.Run(context.Background(), orchestrator.Options{
		Dir: dir, Client: planner{}, Own: []tools.Tool{inventory}, Tools: []string{"delegate_task"},
		Watch: func(e journal.Event) {
			if p, _ := e.Decode(); e.Kind == "settled" {
				s := p.(*journal.Settled)
				fmt.Println(s.Child, s.Report[strings.LastIndex(s.Report, "\n")+1:])
			}
		},
	}, "find the ports of api and web")
	fmt.Println(out.Answer, err)
	// Output:
	// 0.1 api listens on 8143
	// 0.2 web listens on 8080
	// both ports are known <nil>
}
