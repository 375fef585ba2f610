// Package probe finds out what a model can do, by asking it: one short conversation with a tool
// call, its result, an answer, and the answer again in a form.
//
// Non-goals: how good the model is. Every answer is one sample: a model that did not call two
// tools at once may do so another time.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"skein/agent/model"
)

// A Verdict is what was found.
type Verdict string

// The verdicts.
const (
	OK          Verdict = "ok"
	No          Verdict = "no"
	Unavailable Verdict = "unavailable" // it cannot be told
)

// A Finding is one thing a model does or does not.
type Finding struct {
	What    string
	Verdict Verdict
	Detail  string
}

// A Report is what was found of a model.
type Report struct {
	Findings []Finding
	Usage    model.Usage // of all exchanges
	Err      error       // why the model is not fit for work; nil if it answers and calls tools
}

const maxTokens = 1024 // of one reply; models that think first need some

const instruction = `This is a test of the connection. Look up the stock of apples and the stock of pears with the tool stock: two calls in one reply. When you have both numbers, answer with their sum.`

var tool = model.Tool{
	Name: "stock", Description: "Tells how many pieces of a fruit are in stock.",
	Schema: json.RawMessage(`{"type":"object","properties":{"fruit":{"type":"string"}},"required":["fruit"],"additionalProperties":false}`),
}

var sumSchema = json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`)

// Model asks a model. Streams says that its replies are expected in pieces.
func Model(ctx context.Context, c model.Client, streams bool) Report {
	p := &probe{client: c, streams: streams, usage: model.NoUsage()}
	err := p.run(ctx)
	return Report{Findings: p.findings, Usage: p.usage, Err: err}
}

type probe struct {
	client  model.Client
	talk    *model.Transcript
	tools   json.RawMessage
	streams bool

	findings []Finding
	usage    model.Usage
	turn     int
	pieces   int
	second   model.Usage // of the last request that repeats the ones before it
}

func (p *probe) say(what string, v Verdict, format string, args ...any) {
	p.findings = append(p.findings, Finding{what, v, fmt.Sprintf(format, args...)})
}

func (p *probe) run(ctx context.Context) (err error) {
	if p.tools, err = p.client.EncodeTools([]model.Tool{tool}); err != nil {
		return err
	}
	p.talk = model.NewTranscript(p.client)
	for _, m := range []model.Message{{Role: model.System, Text: "You answer briefly and use the tools you are given."}, {Role: model.User, Text: instruction}} {
		if err := p.talk.Append(m); err != nil {
			return err
		}
	}
	start := time.Now()
	reply, err := p.ask(ctx, model.Request{Tools: p.tools})
	if err != nil {
		var failed *model.Error
		if errors.As(err, &failed) && failed.Status != 0 {
			p.say("reachable", OK, "it answers, with status %d", failed.Status)
			p.say("tools", refused(err), "%s", failed.Message)
		} else {
			p.say("reachable", No, "%v", err)
		}
		return err
	}
	p.say("reachable", OK, "%.1f s", time.Since(start).Seconds())
	calls := p.calls(reply)
	reply, err = p.answer(ctx, reply)
	if err != nil {
		p.say("answer", No, "%v", err)
		return err
	}
	p.stream()
	p.counts()
	p.form(ctx)
	switch {
	case calls == 0:
		return &unfit{"the model did not call the tool it was asked to", "try another model; subagents and edits are tool calls"}
	case strings.TrimSpace(reply.Message.Text) == "":
		return &unfit{"the model gave no answer to the results of its calls", "try another model"}
	}
	return nil
}

// refused is what a failed request says of what it asked for: something only if the server
// found fault with the request. A wrong key, a limit or a server in trouble tell nothing.
func refused(err error) Verdict {
	var failed *model.Error
	if errors.As(err, &failed) && (failed.Status == http.StatusBadRequest || failed.Status == http.StatusUnprocessableEntity) {
		return No
	}
	return Unavailable
}

// calls says what the first reply called, and returns how many calls can be carried out.
func (p *probe) calls(reply model.Reply) int {
	good := 0
	for _, call := range reply.Message.Calls {
		var args struct{ Fruit string }
		if call.Name == tool.Name && json.Unmarshal([]byte(call.Args), &args) == nil && args.Fruit != "" {
			good++
		}
	}
	switch {
	case good == 0 && len(reply.Message.Calls) > 0:
		p.say("tools", No, "it called %s with %s", reply.Message.Calls[0].Name, reply.Message.Calls[0].Args)
	case good == 0:
		p.say("tools", No, "no call, but: %s", reply.Message.Text)
	case strings.HasPrefix(p.client.Dialect(), "text+"):
		p.say("tools", OK, "as text: the model has no calls of its own")
	default:
		p.say("tools", OK, "")
	}
	switch {
	case good > 1:
		p.say("parallel calls", OK, "%d in one reply", good)
	case good == 1:
		p.say("parallel calls", No, "one call, where two were asked for")
	default:
		p.say("parallel calls", Unavailable, "there was no call")
	}
	return good
}

// answerTurns is how many further replies a model has that calls one tool after the other.
const answerTurns = 3

// answer gives the results of calls until there is an answer, and returns the last reply.
func (p *probe) answer(ctx context.Context, reply model.Reply) (model.Reply, error) {
	for range answerTurns {
		if err := p.talk.Append(reply.Message); err != nil {
			return reply, err
		}
		if len(reply.Message.Calls) == 0 {
			return reply, nil
		}
		for _, call := range reply.Message.Calls {
			if err := p.talk.Append(model.Message{Role: model.ToolRole, CallID: call.ID, Name: call.Name, Text: stock(call.Args)}); err != nil {
				return reply, err
			}
		}
		var err error
		if reply, err = p.ask(ctx, model.Request{Tools: p.tools}); err != nil {
			return reply, err
		}
		p.second = reply.Usage
	}
	return reply, p.talk.Append(model.Message{Role: model.Assistant, Text: reply.Message.Text})
}

// stock is the tool.
func stock(args string) string {
	args = strings.ToLower(args)
	switch {
	case strings.Contains(args, "apple"):
		return "17"
	case strings.Contains(args, "pear"):
		return "25"
	}
	return "unknown fruit: ask for apples or pears"
}

// form asks for the answer once more, as JSON of a schema. That it fails says something of the
// schema only.
func (p *probe) form(ctx context.Context) {
	err := p.talk.Append(model.Message{Role: model.User, Text: `Give the sum once more, as JSON such as {"sum": 3} and nothing else.`})
	var reply model.Reply
	if err == nil {
		reply, err = p.ask(ctx, model.Request{Tools: p.tools, NoCalls: true, Schema: sumSchema})
	}
	const checked = "answers are checked, and asked for again"
	var sum struct{ Sum *int }
	switch {
	case err != nil:
		p.say("schema", refused(err), "%v", err)
	case json.Unmarshal([]byte(reply.Message.Text), &sum) == nil && sum.Sum != nil:
		p.say("schema", OK, "sum %d", *sum.Sum)
	default:
		p.say("schema", No, "%s; this one was: %s", checked, reply.Message.Text)
	}
}

// stream says whether replies came in pieces.
func (p *probe) stream() {
	switch {
	case !p.streams:
		p.say("streaming", Unavailable, "it is off")
	case p.pieces > 0:
		p.say("streaming", OK, "%d pieces", p.pieces)
	default:
		p.say("streaming", No, "replies came in one piece")
	}
}

// counts says what is known of the cost.
func (p *probe) counts() {
	if in := p.usage.Prompt(); in.Known && p.usage.Output.Known {
		p.say("usage", OK, "%s tokens in, %s out", in, p.usage.Output)
	} else {
		p.say("usage", Unavailable, "budgets count estimates")
	}
	switch read := p.second.CacheRead; {
	case p.turn == 1:
		p.say("cache", Unavailable, "there was no second request")
	case !read.Known:
		p.say("cache", Unavailable, "the provider reports no cache figures")
	case read.N > 0:
		p.say("cache", OK, "%s of the %s tokens of a later request", read, p.second.Prompt())
	default:
		p.say("cache", No, "nothing of a later request; so short a one is often left out")
	}
}

// ask does one exchange with the conversation as it stands.
func (p *probe) ask(ctx context.Context, req model.Request) (model.Reply, error) {
	p.turn++
	req.Messages, req.MaxTokens = p.talk.Messages(), maxTokens
	req.Origin = model.Origin{Agent: "0", Turn: p.turn}
	if p.streams {
		req.Stream = func(model.Delta) { p.pieces++ }
	}
	reply, err := p.client.Exchange(ctx, req)
	if err == nil {
		p.usage = p.usage.Plus(reply.Usage)
	}
	return reply, err
}

// unfit is a model that runs cannot work with.
type unfit struct{ text, hint string }

func (u *unfit) Error() string { return u.text }

// Hint says what to do.
func (u *unfit) Hint() string { return u.hint }
