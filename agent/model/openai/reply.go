package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

type completion struct {
	Choices []struct {
		Message json.RawMessage `json:"message"`
		Finish  string          `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"` // gateways report failures with status 200

	message json.RawMessage // of the first choice
	finish  string
}

type received struct {
	Content json.RawMessage `json:"content"` // null, a text, or an array of parts
	Refusal string          `json:"refusal"`
	Calls   []receivedCall  `json:"tool_calls"`
}

type receivedCall struct {
	ID       json.RawMessage `json:"id"`
	Function struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"` // a text, or the object itself
	} `json:"function"`
}

// whole reads a completion that was sent in one piece.
func (c *Client) whole(data []byte) (completion, error) {
	var full completion
	if len(bytes.TrimSpace(data)) == 0 {
		return full, c.wire.Short(http.StatusOK, "the reply is empty")
	}
	if err := json.Unmarshal(data, &full); err != nil {
		return full, c.wire.NotOurs("the reply is no chat completion", data, err)
	}
	if rawjson.Given(full.Error) {
		return full, c.reported(data, full.Error)
	}
	if len(full.Choices) == 0 || !rawjson.Given(full.Choices[0].Message) {
		return full, c.wire.Short(http.StatusOK, "the reply holds no message")
	}
	full.message, full.finish = full.Choices[0].Message, full.Choices[0].Finish
	return full, nil
}

// reported is a failure told by an answer with status 200. Gateways give the status that
// they got themselves as the error's code. An error without one is a passing one unless it
// says that the request is wrong.
func (c *Client) reported(data []byte, raw json.RawMessage) error {
	var told struct {
		Code json.RawMessage `json:"code"`
		Type string          `json:"type"`
	}
	_ = json.Unmarshal(raw, &told) // an error of another shape tells its words only
	status, err := strconv.Atoi(strings.Trim(string(told.Code), `"`))
	if err == nil && status >= 400 && status <= 599 {
		return c.wire.Reported(status, data)
	}
	e := c.wire.Reported(http.StatusOK, data)
	e.Again = !e.TooLong && !strings.Contains(told.Type+string(told.Code), "invalid")
	return e
}

func (c *Client) reply(full completion, req model.Request) (model.Reply, error) {
	if full.finish == exhausted {
		return model.Reply{}, c.exhausted(full)
	}
	raw := full.message
	var in received
	if err := json.Unmarshal(raw, &in); err != nil {
		return model.Reply{}, c.unreadable("the reply's message cannot be read", raw, err)
	}
	given := make([]string, len(in.Calls))
	for i, rc := range in.Calls {
		given[i] = rawjson.Text(rc.ID) // no id, or one that is no text, is replaced
	}
	ids, changed := wire.CallIDs(given, req.Messages)
	if changed {
		var err error
		if raw, err = withIDs(raw, ids); err != nil {
			return model.Reply{}, c.unreadable("the reply's tool calls cannot be read", raw, err)
		}
	}
	m := model.Message{Role: model.Assistant, Text: text(in.Content), Raw: raw}
	finish := finished(full.finish, len(in.Calls) > 0)
	for i, rc := range in.Calls {
		cut := finish == model.FinishLength && i == len(in.Calls)-1
		m.Calls = append(m.Calls, model.ToolCall{ID: ids[i], Name: rc.Function.Name, Args: wire.Arguments(rc.Function.Args, cut)})
	}
	out := model.Reply{Message: m, Finish: finish, Usage: usage(full.Usage)}
	if finish == model.FinishOther {
		out.Why = c.wire.Clean(full.finish)
	}
	if in.Refusal != "" {
		out.Finish, out.Why = model.FinishOther, ""
		if m.Text == "" {
			out.Message.Text = in.Refusal
		}
	}
	return out, nil
}

// exhausted is how DeepSeek ends a reply that its servers had no room to go on with.
const exhausted = "insufficient_system_resource"

func (c *Client) exhausted(full completion) error {
	e := c.wire.Short(http.StatusOK, "the provider ended the reply: "+exhausted)
	e.Advice, e.Usage = "the provider is in trouble: try again later", usage(full.Usage)
	return e
}

func (c *Client) unreadable(what string, raw []byte, err error) error {
	return c.wire.Fault(http.StatusOK, what+": "+c.wire.Clean(string(raw)), "", err)
}

// text reads a message's content: a text, or the text parts of an array one after another.
func text(content json.RawMessage) string {
	var s string
	if !rawjson.Given(content) || json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func finished(word string, calls bool) model.Finish {
	switch word {
	case "length", "max_tokens":
		return model.FinishLength
	case "stop", "tool_calls", "function_call", "":
		if calls { // some servers call tools and say "stop", or nothing
			return model.FinishToolCalls
		}
		return model.FinishStop
	}
	return model.FinishOther
}
