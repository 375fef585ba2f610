package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"skein/agent/model"
)

// A grove is a plan for one agent: how long its model thinks, what each reply asks for, and
// how it ends.
type grove struct {
	thinks time.Duration
	turns  []reply
	end    string // answers, fails, panics or hangs
}

// A reply is a list of calls.
type reply []ask

// An ask is one call. With child set it is a delegation.
type ask struct {
	tool, args string
	writes     bool
	child      *grove
}

// A forest is a model in this process that answers every agent by its plan, and everybody else as
// a resolver of a conflict in a.txt. It keeps what it was sent.
type forest struct {
	groves map[string]*grove // by ordinal

	mu      sync.Mutex
	sent    map[string][]string // agent → request bodies
	busy    int                 // exchanges under way
	peak    int
	spent   int64 // tokens of all exchanges
	largest int64 // tokens of one, at most
}

// plant gives every agent of a plan its ordinal: what it asks for in request order.
func plant(root *grove) *forest {
	f := &forest{groves: map[string]*grove{}, sent: map[string][]string{}}
	var name func(ordinal string, g *grove)
	name = func(ordinal string, g *grove) {
		f.groves[ordinal] = g
		born := 0
		for _, turn := range g.turns {
			for _, a := range turn {
				if a.child != nil {
					born++
					name(fmt.Sprintf("%s.%d", ordinal, born), a.child)
				}
			}
		}
	}
	name("0", root)
	return f
}

func (*forest) Dialect() string                                      { return "forest" }
func (*forest) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m) }
func (*forest) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(ts) }

// Exchange implements [model.Client].
func (f *forest) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	var read int64
	var body strings.Builder
	for _, m := range req.Messages {
		body.Write(m.Raw)
		read += int64(len(m.Raw)) / 4
	}
	f.mu.Lock()
	g, turn := f.groves[req.Origin.Agent], req.Origin.Turn
	f.sent[req.Origin.Agent] = append(f.sent[req.Origin.Agent], body.String())
	f.busy++
	f.peak = max(f.peak, f.busy)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy--
	}()
	if g == nil {
		g = resolver(req.Origin.Agent)
	}
	last := turn > len(g.turns) || req.NoCalls
	wait := time.After(g.thinks)
	if last && g.end == "hangs" {
		wait = nil
	}
	select {
	case <-wait:
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
	m := model.Message{Role: model.Assistant, Text: "done " + req.Origin.Agent}
	switch {
	case last && g.end == "fails":
		return model.Reply{}, &model.Error{Provider: "forest", Status: 500, Message: "felled"}
	case last && g.end == "panics":
		panic("felled")
	case !last:
		for i, a := range g.turns[turn-1] {
			m.Calls = append(m.Calls, a.call(fmt.Sprintf("%s-%d-%d", req.Origin.Agent, turn, i)))
		}
	}
	raw, err := json.Marshal(m)
	m.Raw = raw
	wrote := int64(len(raw)) / 4
	f.mu.Lock()
	f.spent += read + wrote
	f.largest = max(f.largest, read+wrote)
	f.mu.Unlock()
	return model.Reply{
		Message: m, Finish: model.FinishStop,
		Usage: model.Usage{Input: model.Tokens(read), CacheRead: model.Tokens(0), CacheWrite: model.Tokens(0), Output: model.Tokens(wrote)},
	}, err
}

func (a ask) call(id string) model.ToolCall {
	if a.child == nil {
		return model.ToolCall{ID: id, Name: a.tool, Args: a.args}
	}
	access := "read"
	if a.writes {
		access = "write"
	}
	args, _ := json.Marshal(map[string]string{"task": "task " + id, "access": access}) // of strings, which have a form
	return model.ToolCall{ID: id, Name: "delegate_task", Args: string(args)}
}

// resolver is the plan of one who resolves a conflict. Those of an even ordinal do not.
func resolver(name string) *grove {
	if (name[len(name)-1]-'0')%2 == 0 {
		return &grove{}
	}
	write := ask{tool: "write_file", args: fmt.Sprintf(`{"path":"a.txt","content":"a by %s\n"}`, name)}
	return &grove{turns: []reply{looks("a.txt"), {write}}}
}

// bodies is all that was sent, agent by agent.
func (f *forest) bodies() string {
	var b strings.Builder
	var names []string
	for name := range f.sent {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, body := range f.sent[name] {
			b.WriteString(name + " " + body + "\n")
		}
	}
	return b.String()
}

// crowd is a reply that asks for so many children of one plan.
func crowd(n int, child *grove) reply {
	var r reply
	for range n {
		r = append(r, ask{child: child})
	}
	return r
}

// looks is a reply that reads a file.
func looks(path string) reply {
	return reply{{tool: "read_file", args: fmt.Sprintf(`{"path":%q}`, path)}}
}
