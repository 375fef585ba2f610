package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ollama is Ollama's own protocol. It knows no ids: results name the tool that answered.
type ollama struct{}

var _ protocol = ollama{}

func (ollama) habits() habits { return habits{streamType: typeLines} }

const (
	// ollamaWindow is how much of the input a model sees where the request does not say.
	ollamaWindow = 4096
	// epoch is when every reply was made: replies know no clock.
	epoch = "1970-01-01T00:00:00Z"
)

// Messages and replies as they are sent; the order of the fields is part of their bytes.
type (
	ollamaReply struct {
		Model      string        `json:"model"`
		CreatedAt  string        `json:"created_at"`
		Message    ollamaMessage `json:"message"`
		DoneReason string        `json:"done_reason,omitempty"`
		Done       bool          `json:"done"`
		*ollamaCounts
	}
	ollamaCounts struct {
		Total          int64 `json:"total_duration"`
		Load           int64 `json:"load_duration"`
		Prompt         int64 `json:"prompt_eval_count"`
		PromptDuration int64 `json:"prompt_eval_duration"`
		Output         int64 `json:"eval_count"`
		OutputDuration int64 `json:"eval_duration"`
	}
	ollamaMessage struct {
		Role     string       `json:"role"`
		Content  string       `json:"content"`
		Thinking string       `json:"thinking,omitempty"`
		Calls    []ollamaCall `json:"tool_calls,omitempty"`
	}
	ollamaCall struct {
		Function ollamaFunction `json:"function"`
	}
	ollamaFunction struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
)

func (ollama) read(_ http.Header, body []byte) (request, error) {
	var in struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
		Tools    json.RawMessage   `json:"tools"`
		Stream   *bool             `json:"stream"`
		Options  struct {
			Window int64 `json:"num_ctx"`
		} `json:"options"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	switch {
	case in.Model == "":
		return request{}, errors.New("model is required")
	case in.Tools != nil && in.Tools[0] != '[' && string(in.Tools) != "null":
		return request{}, errors.New("tools: not a list")
	case len(in.Messages) == 0:
		return request{}, errors.New("messages: at least one is needed")
	}
	r := request{
		model: in.Model, streams: in.Stream == nil || *in.Stream,
		window: in.Options.Window, pieces: [][]byte{in.Tools},
	}
	if r.window <= 0 {
		r.window = ollamaWindow
	}
	var p pairing
	for i, raw := range in.Messages {
		if err := r.ollamaMessage(raw, &p); err != nil {
			return request{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	r.cached = len(r.pieces)
	return r, p.end()
}

func (r *request) ollamaMessage(raw json.RawMessage, p *pairing) error {
	var m struct {
		ollamaMessage
		Tool string `json:"tool_name"`
	}
	if err := json.Unmarshal(raw, &m); err != nil { // also content that is no text, as there
		return err
	}
	if m.Role == "tool" {
		r.pieces = append(r.pieces, raw)
		r.fromTool(m.Content)
		return p.answered(m.Tool)
	}
	if err := p.end(); err != nil {
		return err
	}
	switch m.Role {
	case "system":
		r.fromSystem(m.Content)
	case "user":
		r.fromUser(m.Content)
	case "assistant":
		var calls []call
		for _, c := range m.Calls {
			if !isObject(string(c.Function.Arguments)) {
				return fmt.Errorf("the arguments of %s are no object", c.Function.Name)
			}
			p.called(c.Function.Name)
			calls = append(calls, call{c.Function.Name, string(c.Function.Arguments)})
		}
		r.fromModel(m.Content, calls...)
		raw = again(raw, &ollamaMessage{})
	default:
		return fmt.Errorf("invalid role: %s", m.Role)
	}
	r.pieces = append(r.pieces, raw)
	return nil
}

func (ollama) message(a answer) (ollamaMessage, error) {
	m := ollamaMessage{Role: "assistant", Content: a.text(), Thinking: a.reasoning}
	for _, c := range a.calls {
		if !isObject(c.args) {
			return m, errNoObject
		}
		m.Calls = append(m.Calls, ollamaCall{ollamaFunction{c.name, json.RawMessage(c.args)}})
	}
	return m, nil
}

func (p ollama) pieces(a answer) ([][]byte, error) {
	m, err := p.message(a)
	if err != nil {
		return nil, err
	}
	raw, err := encode(m)
	return [][]byte{raw}, err
}

func (ollama) reply(a answer, m ollamaMessage) ollamaReply {
	return ollamaReply{Model: a.model, CreatedAt: epoch, Message: m}
}

// last is the reply that ends the exchange. Calls are no reason of their own to stop.
func (p ollama) last(a answer, m ollamaMessage) ollamaReply {
	out := p.reply(a, m)
	out.Done, out.DoneReason = true, a.finish
	if a.finish == "tool_calls" || a.finish == "content_filter" {
		out.DoneReason = "stop"
	}
	out.ollamaCounts = &ollamaCounts{Prompt: a.figures.input, Output: a.figures.output}
	return out
}

func (p ollama) whole(a answer) ([]byte, error) {
	m, err := p.message(a)
	if err != nil {
		return nil, err
	}
	return encode(p.last(a, m))
}

func (p ollama) stream(a answer) ([][]byte, error) {
	m, err := p.message(a)
	if err != nil {
		return nil, err
	}
	var s sequence
	send := func(r ollamaReply) { s.add("", r, "\n") }
	for _, text := range bits(m.Thinking) {
		send(p.reply(a, ollamaMessage{Role: m.Role, Thinking: text}))
	}
	for _, text := range bits(m.Content) {
		send(p.reply(a, ollamaMessage{Role: m.Role, Content: text}))
	}
	for _, c := range m.Calls {
		send(p.reply(a, ollamaMessage{Role: m.Role, Calls: []ollamaCall{c}}))
	}
	send(p.last(a, ollamaMessage{Role: m.Role}))
	return s.chunks, s.err
}

func (ollama) problem(_ int, _, words string) []byte {
	data, _ := encode(map[string]string{"error": words}) // a text always encodes
	return data
}
