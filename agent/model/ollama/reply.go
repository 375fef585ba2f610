package ollama

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// received is a reply that was sent whole, or a piece of one.
type received struct {
	Message json.RawMessage `json:"message"`
	Done    bool            `json:"done"`
	Reason  string          `json:"done_reason"`
	Error   json.RawMessage `json:"error"`

	Prompt *int64 `json:"prompt_eval_count"`        // of the whole prompt
	Cached *int64 `json:"prompt_eval_cached_count"` // of it, read from the cache; newer servers only
	Output *int64 `json:"eval_count"`
}

type message struct {
	Content string `json:"content"`
	Calls   []struct {
		ID       string `json:"id"` // newer servers only
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (c *Client) whole(data []byte) (received, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return received{}, c.wire.Short(http.StatusOK, "the reply is empty")
	}
	out, err := c.piece(data)
	switch {
	case err != nil:
		return out, err
	case !rawjson.Given(out.Message):
		return out, c.wire.Short(http.StatusOK, "the reply holds no message")
	case !out.Done:
		return out, c.wire.Short(http.StatusOK, "the reply is not whole")
	}
	return out, nil
}

func (c *Client) piece(data []byte) (received, error) {
	var p received
	if err := json.Unmarshal(data, &p); err != nil {
		return p, c.wire.NotOurs("the reply is none of a chat", data, err)
	}
	if rawjson.Given(p.Error) {
		return p, c.wire.Reported(http.StatusInternalServerError, data)
	}
	return p, nil
}

// pieces reads a stream into the reply that it would have been. Its last piece has to come:
// without it something is missing.
func (c *Client) pieces(r io.Reader, tell func(model.Delta)) (received, error) {
	var (
		last    received
		message rawjson.Object
		begun   bool
	)
	err := wire.Lines(r, func(line []byte, whole bool) (bool, error) {
		if !whole && !json.Valid(line) {
			return true, nil // cut off
		}
		p, err := c.piece(line)
		if err != nil {
			return false, err
		}
		if rawjson.Given(p.Message) {
			begun = true
			if err := message.Merge(p.Message); err != nil {
				return false, c.wire.NotOurs("a piece of the stream cannot be read", line, err)
			}
			announce(p.Message, tell)
		}
		last = p
		return p.Done, nil
	})
	switch {
	case err != nil:
		return last, err
	case !last.Done:
		return last, c.wire.Short(0, "the stream ended before the reply was whole")
	case !begun:
		return last, c.wire.Short(http.StatusOK, "the reply holds no message")
	}
	last.Message = message.Bytes()
	return last, nil
}

// announce passes on what a piece adds to the text.
func announce(piece json.RawMessage, tell func(model.Delta)) {
	var d struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
	}
	if tell == nil || json.Unmarshal(piece, &d) != nil {
		return
	}
	if d.Content != "" || d.Thinking != "" {
		tell(model.Delta{Text: d.Content, Reasoning: d.Thinking})
	}
}

func (c *Client) reply(full received, req model.Request) (model.Reply, error) {
	var in message
	if err := json.Unmarshal(full.Message, &in); err != nil {
		return model.Reply{}, c.wire.Fault(http.StatusOK, "the reply's message cannot be read: "+c.wire.Clean(string(full.Message)), "", err)
	}
	m := model.Message{Role: model.Assistant, Text: in.Content, Raw: full.Message}
	given := make([]string, len(in.Calls))
	for i, call := range in.Calls {
		given[i] = call.ID
	}
	// Results name the tool, not the call: the ids are nobody's business but ours, and the
	// raw message stays without them.
	ids, _ := wire.CallIDs(given, req.Messages)
	finish := finished(full.Reason, len(in.Calls) > 0)
	for i, call := range in.Calls {
		cut := finish == model.FinishLength && i == len(in.Calls)-1
		m.Calls = append(m.Calls, model.ToolCall{ID: ids[i], Name: call.Function.Name, Args: wire.Arguments(call.Function.Arguments, cut)})
	}
	out := model.Reply{Message: m, Finish: finish, Usage: full.usage()}
	if finish == model.FinishOther {
		out.Why = c.wire.Clean(full.Reason)
	}
	return out, nil
}

func finished(word string, calls bool) model.Finish {
	switch {
	case word == "length":
		return model.FinishLength
	case word != "stop" && word != "": // such as load and unload
		return model.FinishOther
	case calls:
		return model.FinishToolCalls
	}
	return model.FinishStop
}

// usage reads the counters; thinking is a part of the output that is not told apart.
func (r received) usage() model.Usage {
	out := model.Usage{Input: wire.Count(r.Prompt), CacheRead: wire.Count(r.Cached), Output: wire.Count(r.Output)}
	if !out.Input.Known || out.CacheRead.N > out.Input.N {
		out.CacheRead = model.Count{}
	}
	out.Input.N -= out.CacheRead.N
	return out
}
