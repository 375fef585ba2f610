package anthropic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// A message is a reply, sent whole or made from a stream's pieces.
type message struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Stop    string          `json:"stop_reason"`
	Usage   json.RawMessage `json:"usage"`

	counts counts
	args   map[int]string // by block: the text of a streamed call's arguments, where it is no object
}

type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	ID    json.RawMessage `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (c *Client) whole(data []byte) (message, error) {
	var m message
	if len(bytes.TrimSpace(data)) == 0 {
		return m, c.wire.Short(http.StatusOK, "the reply is empty")
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, c.wire.NotOurs("the reply is no message", data, err)
	}
	if m.Type == "error" {
		return m, c.reported(data)
	}
	if !rawjson.Given(m.Content) {
		return m, c.wire.Short(http.StatusOK, "the reply holds no message")
	}
	m.counts.add(m.Usage)
	return m, nil
}

// statuses are the HTTP statuses of the API's kinds of error, which streams tell by name only.
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
	"request_too_large":     http.StatusRequestEntityTooLarge,
	"rate_limit_error":      http.StatusTooManyRequests,
	"timeout_error":         http.StatusGatewayTimeout,
	"overloaded_error":      529,
}

// reported is a failure told by an answer that began with status 200.
func (c *Client) reported(data []byte) error {
	var told struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &told) // an error of another shape tells its words only
	status, known := statuses[told.Error.Type]
	if !known {
		status = http.StatusInternalServerError
	}
	return c.wire.Reported(status, data)
}

func (c *Client) reply(full message, req model.Request) (model.Reply, error) {
	var blocks []block
	if err := json.Unmarshal(full.Content, &blocks); err != nil {
		return model.Reply{}, c.unreadable(full.Content, err)
	}
	m := model.Message{Role: model.Assistant}
	finish, why := finished(full.Stop), ""
	if finish == model.FinishOther {
		why = c.wire.Clean(full.Stop)
	}
	var given []string
	for i, b := range blocks {
		switch b.Type {
		case "text":
			m.Text += b.Text
		case "tool_use":
			args, streamed := full.args[i]
			cut := finish == model.FinishLength && i == len(blocks)-1
			if !streamed || args == "" && !cut {
				args = wire.Arguments(b.Input, cut)
			}
			given = append(given, rawjson.Text(b.ID))
			m.Calls = append(m.Calls, model.ToolCall{Name: b.Name, Args: args})
		}
	}
	ids, changed := wire.CallIDs(given, req.Messages)
	for i, id := range ids {
		m.Calls[i].ID = id
	}
	var err error
	if m.Raw, err = sendable(full.Content, blocks, ids, changed); err != nil {
		return model.Reply{}, c.unreadable(full.Content, err)
	}
	if finish == model.FinishStop && len(ids) > 0 {
		finish = model.FinishToolCalls
	}
	return model.Reply{Message: m, Finish: finish, Why: why, Usage: full.counts.usage()}, nil
}

func (c *Client) unreadable(content []byte, err error) error {
	return c.wire.Fault(http.StatusOK, "the reply's content cannot be read: "+c.wire.Clean(string(content)), "", err)
}

// sendable returns the content as it can be sent back. Nearly always it is what came. Two
// things are changed on arrival, once: blank texts go, since the API takes none, and calls
// get the ids that their results name, where they came without.
func sendable(content json.RawMessage, blocks []block, ids []string, changed bool) (json.RawMessage, error) {
	blank := func(b block) bool { return b.Type == "text" && strings.TrimSpace(b.Text) == "" }
	for _, b := range blocks {
		changed = changed || blank(b)
	}
	if !changed {
		return content, nil
	}
	var kept []json.RawMessage
	n, call := 0, 0
	err := rawjson.Each(content, func(_ string, one json.RawMessage) error {
		b := blocks[n]
		n++
		if blank(b) {
			return nil
		}
		if b.Type == "tool_use" {
			id, err := rawjson.Encode(ids[call])
			if err == nil {
				one, err = rawjson.SetField(one, "id", id)
			}
			if err != nil {
				return err
			}
			call++
		}
		kept = append(kept, bytes.Clone(one))
		return nil
	})
	return rawjson.List(kept, func(one json.RawMessage) json.RawMessage { return one }), err
}

func finished(word string) model.Finish {
	switch word {
	case "max_tokens", "model_context_window_exceeded":
		return model.FinishLength
	case "end_turn", "stop_sequence", "tool_use", "":
		return model.FinishStop
	}
	return model.FinishOther // refusal, which says no more than that; pause_turn
}

// counts are the API's counters. They are disjoint; thinking is a part of the output that
// is not told apart.
type counts struct {
	Input      *int64 `json:"input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
}

// add takes counters over; those of a stream are told more than once, each time anew.
func (c *counts) add(raw json.RawMessage) {
	var now counts
	if json.Unmarshal(raw, &now) != nil {
		return // no counters: they stay unknown
	}
	take := func(to **int64, from *int64) {
		if from != nil {
			*to = from
		}
	}
	take(&c.Input, now.Input)
	take(&c.CacheRead, now.CacheRead)
	take(&c.CacheWrite, now.CacheWrite)
	take(&c.Output, now.Output)
}

func (c *counts) usage() model.Usage {
	return model.Usage{Input: wire.Count(c.Input), CacheRead: wire.Count(c.CacheRead), CacheWrite: wire.Count(c.CacheWrite), Output: wire.Count(c.Output)}
}
