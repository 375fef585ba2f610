// Package text lets models call tools that have no calls of their own: a call is text that
// the model writes, see [Parse], a result is the next user message.
//
// [Client] wraps any client and changes three things on the way. The description of the
// tools is put in front of the system message, since it is a part of the conversation's
// front; it is encoded once, so every request begins with the same bytes. Calls and results
// are encoded as text. And a reply is cut behind its first call before it enters the
// history: what a model makes up after a call, results above all, is never sent back to it.
// A client that logs or records what came over the wire goes below this one, and sees the
// whole reply.
//
// Non-goals: several calls in one reply; models that call natively.
package text

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"skein/agent/model"
)

// Client returns a client that speaks the text protocol to the model of c.
func Client(c model.Client) model.Client {
	return &client{below: c, fronts: map[front]json.RawMessage{}}
}

type client struct {
	below model.Client

	mu     sync.Mutex
	fronts map[front]json.RawMessage // encoded; a run has a few
}

// A front is what a conversation begins with: the tools as from EncodeTools, and the text
// of the system message.
type front struct{ tools, system string }

var _ model.Client = (*client)(nil)

// Dialect implements [model.Client]: messages of the dialect below are made anew, since
// calls and results are not sent as such.
func (c *client) Dialect() string { return "text+" + c.below.Dialect() }

// Encode implements [model.Client].
func (c *client) Encode(m model.Message) (json.RawMessage, error) {
	switch m.Role {
	case model.Assistant:
		parts := make([]string, 0, 1+len(m.Calls))
		if m.Text != "" {
			parts = append(parts, m.Text)
		}
		for _, call := range m.Calls {
			parts = append(parts, Render(call))
		}
		return c.below.Encode(model.Message{Role: m.Role, Text: strings.Join(parts, "\n")})
	case model.ToolRole:
		return c.below.Encode(model.Message{Role: model.User, Text: result(m)})
	}
	return c.below.Encode(m)
}

// resultMark begins a message that answers a call.
const resultMark = "TOOL_RESULT"

func result(m model.Message) string {
	state := "ok"
	if m.IsError {
		state = "failed"
	}
	return fmt.Sprintf("%s %s (%s)\n%s", resultMark, m.Name, state, m.Text)
}

// EncodeTools implements [model.Client]. It returns the text that describes the tools, as a
// JSON string.
func (c *client) EncodeTools(tools []model.Tool) (json.RawMessage, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	block, err := describe(tools)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(encode(block)), nil
}

// Exchange implements [model.Client]. Calls are looked for only if tools are offered.
func (c *client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	asked := req
	asked.Tools = nil
	var err error
	if asked.Messages, err = c.messages(req); err != nil {
		return model.Reply{}, err
	}
	if len(req.Tools) == 0 {
		return c.below.Exchange(ctx, asked)
	}
	var shown *shower
	if req.Stream != nil {
		shown = &shower{to: req.Stream}
		asked.Stream = shown.add
	}
	reply, err := c.below.Exchange(ctx, asked)
	if err != nil {
		return model.Reply{}, err
	}
	whole := reply.Message.Text
	call, at, end, found := Parse(whole)
	if shown != nil {
		shown.end(whole[:at])
	}
	if native := reply.Message.Calls; !found && len(native) > 0 {
		// A call that nobody offered: a result of it could not be sent.
		call, found = native[0], true
		whole = strings.TrimPrefix(whole+"\n"+Render(call), "\n")
		end = len(whole)
	}
	if !found {
		return reply, nil
	}
	return c.cut(reply, call, whole[:at], whole[:end], len(req.Messages))
}

// messages returns the request's messages as the client below knows them: their bytes, and
// who speaks. The tools are described in the first one.
func (c *client) messages(req model.Request) ([]model.Message, error) {
	out, rest := make([]model.Message, 0, len(req.Messages)+1), req.Messages
	if len(req.Tools) > 0 {
		f := front{tools: string(req.Tools)}
		if len(rest) > 0 && rest[0].Role == model.System {
			f.system, rest = rest[0].Text, rest[1:]
		}
		raw, err := c.encodeFront(f)
		if err != nil {
			return nil, err
		}
		out = append(out, model.Message{Role: model.System, Raw: raw, Dialect: c.below.Dialect()})
	}
	for _, m := range rest {
		role := m.Role
		if role == model.ToolRole {
			role = model.User
		}
		out = append(out, model.Message{Role: role, Raw: m.Raw, Dialect: c.below.Dialect()})
	}
	return out, nil
}

func (c *client) encodeFront(f front) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if raw, ok := c.fronts[f]; ok {
		return raw, nil
	}
	var text string
	if err := json.Unmarshal([]byte(f.tools), &text); err != nil {
		return nil, fmt.Errorf("encode tools: they are no text of this protocol: %w", err)
	}
	if f.system != "" {
		text += "\n" + f.system
	}
	raw, err := c.below.Encode(model.Message{Role: model.System, Text: text})
	if err != nil {
		return nil, fmt.Errorf("encode tools: %w", err)
	}
	c.fronts[f] = raw
	return raw, nil
}

// cut ends a reply behind its call, in the neutral view and in what is sent back. Before is
// the number of messages it answers: it makes the call's id one of its own.
func (c *client) cut(reply model.Reply, call model.ToolCall, prose, sent string, before int) (model.Reply, error) {
	raw, err := c.below.Encode(model.Message{Role: model.Assistant, Text: sent})
	if err != nil {
		return model.Reply{}, fmt.Errorf("encode the reply: %w", err)
	}
	call.ID = fmt.Sprintf("call_%d", before)
	reply.Message = model.Message{
		Role: model.Assistant, Text: strings.TrimSpace(prose), Calls: []model.ToolCall{call},
		Raw: raw, Dialect: c.Dialect(),
	}
	// A whole call ends the reply, whatever ended what came behind it. One that the limit cut
	// off is not to be carried out.
	if reply.Finish != model.FinishLength || json.Valid([]byte(call.Args)) {
		reply.Finish, reply.Why = model.FinishToolCalls, ""
	}
	return reply, nil
}
