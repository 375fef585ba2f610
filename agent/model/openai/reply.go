package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	"skein/agent/model"
)

type completion struct {
	Choices []struct {
		Message json.RawMessage `json:"message"`
		Finish  string          `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"` // gateways report failures with status 200
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

func (c *Client) reply(data []byte, req model.Request) (model.Reply, error) {
	var full completion
	if err := json.Unmarshal(data, &full); err != nil {
		return model.Reply{}, c.fault(http.StatusOK, "the reply is no chat completion: "+c.clean(string(data)),
			"check that "+c.where()+" is the base URL of an OpenAI-compatible API", err)
	}
	if given(full.Error) {
		return model.Reply{}, c.fault(http.StatusOK, c.serverWords(data), "", nil)
	}
	if len(full.Choices) == 0 || !given(full.Choices[0].Message) {
		return model.Reply{}, c.fault(http.StatusOK, "the reply holds no message", "", nil)
	}
	raw, finish := full.Choices[0].Message, full.Choices[0].Finish

	var in received
	if err := json.Unmarshal(raw, &in); err != nil {
		return model.Reply{}, c.fault(http.StatusOK, "the reply's message cannot be read: "+c.clean(string(raw)), "", err)
	}
	ids, rewrite := nameCalls(in.Calls, req.Messages)
	if rewrite {
		var err error
		if raw, err = withIDs(raw, ids); err != nil {
			return model.Reply{}, c.fault(http.StatusOK, "the reply's tool calls cannot be read: "+c.clean(string(raw)), "", err)
		}
	}
	m := model.Message{Role: model.Assistant, Text: text(in.Content), Raw: raw}
	for i, rc := range in.Calls {
		m.Calls = append(m.Calls, model.ToolCall{ID: ids[i], Name: rc.Function.Name, Args: arguments(rc.Function.Args)})
	}
	out := model.Reply{Message: m, Finish: finished(finish, len(m.Calls) > 0), Usage: usage(full.Usage)}
	if in.Refusal != "" {
		out.Finish = model.FinishOther
		if m.Text == "" {
			out.Message.Text = in.Refusal
		}
	}
	return out, nil
}

// given reports whether a field was there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// text reads a message's content: a text, or the text parts of an array one after another.
func text(content json.RawMessage) string {
	var s string
	if !given(content) || json.Unmarshal(content, &s) == nil {
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

// arguments gives the text of a call's arguments. Some servers send the object itself, and
// none at all for a call without arguments.
func arguments(raw json.RawMessage) string {
	var s string
	switch {
	case !given(raw):
		return "{}"
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
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

type serverUsage struct {
	Prompt        *int64 `json:"prompt_tokens"`
	Completion    *int64 `json:"completion_tokens"`
	CacheHit      *int64 `json:"prompt_cache_hit_tokens"`
	PromptDetails struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage reads the counters. What the server does not tell, or tells as nonsense, stays
// unknown; without a figure for the cache the whole prompt counts as Input.
func usage(raw json.RawMessage) model.Usage {
	var u serverUsage
	if json.Unmarshal(raw, &u) != nil {
		return model.Usage{}
	}
	out := model.Usage{
		Input:     count(u.Prompt),
		CacheRead: count(u.CacheHit),
		Output:    count(u.Completion),
		Reasoning: count(u.CompletionDetails.Reasoning),
	}
	if !out.CacheRead.Known {
		out.CacheRead = count(u.PromptDetails.Cached)
	}
	if !out.Input.Known || out.CacheRead.N > out.Input.N {
		out.CacheRead = model.Count{}
	}
	out.Input.N -= out.CacheRead.N
	return out
}

func count(n *int64) model.Count {
	if n == nil || *n < 0 {
		return model.Count{}
	}
	return model.Tokens(*n)
}
