package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

type chunk struct {
	Choices []struct {
		Index  int             `json:"index"`
		Delta  json.RawMessage `json:"delta"`
		Finish string          `json:"finish_reason"`
	} `json:"choices"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// pieces reads a stream into the completion that it would have been. The end mark or a
// finish reason has to come: without both, something is missing.
func (c *Client) pieces(r io.Reader, tell func(model.Delta)) (completion, error) {
	var (
		m     message
		out   completion
		ended bool
	)
	err := wire.Events(r, func(data []byte) (bool, error) {
		if string(data) == "[DONE]" {
			ended = true
			return true, nil
		}
		var part chunk
		if err := json.Unmarshal(data, &part); err != nil {
			return false, c.wire.NotOurs("the stream holds what is no piece of a chat completion", data, err)
		}
		if rawjson.Given(part.Error) {
			return false, c.reported(data, part.Error)
		}
		if rawjson.Given(part.Usage) {
			out.Usage = part.Usage
		}
		for _, choice := range part.Choices {
			if choice.Index != 0 {
				continue
			}
			if choice.Finish != "" {
				out.finish, ended = choice.Finish, true
			}
			if !rawjson.Given(choice.Delta) {
				continue
			}
			if err := m.add(choice.Delta); err != nil {
				return false, c.wire.NotOurs("a piece of the stream cannot be read", data, err)
			}
			m.tell(choice.Delta, tell)
		}
		return false, nil
	})
	switch {
	case err != nil:
		return completion{}, err
	case !ended:
		return completion{}, c.wire.Short(0, "the stream ended before the reply was whole")
	case !m.begun:
		return completion{}, c.wire.Short(http.StatusOK, "the reply holds no message")
	}
	out.message = m.bytes()
	return out, nil
}

// A message is put together from the deltas of a stream.
type message struct {
	begun  bool
	fields rawjson.Object
	calls  []*streamedCall
}

type streamedCall struct {
	index  int
	id     string
	fields rawjson.Object
}

func (m *message) add(delta json.RawMessage) error {
	if !m.begun {
		m.begun = true
		m.fields.Set("role", json.RawMessage(`"assistant"`))
	}
	return rawjson.Each(delta, func(key string, value json.RawMessage) error {
		switch {
		case key == "role":
			return nil
		case key != "tool_calls":
			return m.fields.Add(key, value)
		case !rawjson.Given(value):
			return nil
		}
		return rawjson.Each(value, func(_ string, one json.RawMessage) error { return m.call(one) })
	})
}

// call adds a piece of a call. Its index says which one it continues; a server that sends no
// index, or the same for all, begins each call with an id of its own.
func (m *message) call(piece json.RawMessage) error {
	var head struct {
		Index *int   `json:"index"`
		ID    string `json:"id"`
	}
	if err := json.Unmarshal(piece, &head); err != nil {
		return err
	}
	var c *streamedCall
	for _, k := range slices.Backward(m.calls) {
		if head.Index == nil || *head.Index == k.index {
			c = k
			break
		}
	}
	if c == nil || head.ID != "" && c.id != "" && head.ID != c.id {
		c = &streamedCall{index: len(m.calls)}
		if head.Index != nil {
			c.index = *head.Index
		}
		m.calls = append(m.calls, c)
		if !m.fields.Has("tool_calls") {
			m.fields.Set("tool_calls", nil) // keeps its place
		}
	}
	if head.ID != "" {
		c.id = head.ID
	}
	return rawjson.Each(piece, func(key string, value json.RawMessage) error {
		if key == "index" { // of the pieces, not of the call
			return nil
		}
		return c.fields.Add(key, value)
	})
}

func (m *message) bytes() json.RawMessage {
	if len(m.calls) > 0 {
		slices.SortStableFunc(m.calls, func(a, b *streamedCall) int { return a.index - b.index })
		m.fields.Set("tool_calls", rawjson.List(m.calls, func(c *streamedCall) json.RawMessage {
			if !c.fields.Has("type") {
				c.fields.Set("type", json.RawMessage(`"function"`))
			}
			return c.fields.Bytes()
		}))
	}
	if !m.fields.Has("content") {
		m.fields.Set("content", json.RawMessage(`""`))
	}
	return m.fields.Bytes()
}

// tell passes on what a delta adds to the text.
func (m *message) tell(delta json.RawMessage, tell func(model.Delta)) {
	if tell == nil {
		return
	}
	var d struct {
		Content   json.RawMessage `json:"content"`
		Refusal   string          `json:"refusal"`
		Thoughts  string          `json:"reasoning_content"`
		Reasoning string          `json:"reasoning"` // the name that OpenRouter and others use
	}
	_ = json.Unmarshal(delta, &d) // fields of another form tell nothing
	out := model.Delta{Text: text(d.Content), Reasoning: d.Thoughts}
	if out.Text == "" {
		out.Text = d.Refusal
	}
	if out.Reasoning == "" {
		out.Reasoning = d.Reasoning
	}
	if out != (model.Delta{}) {
		tell(out)
	}
}
