package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// chat is the protocol of chat completions, with the counts that DeepSeek adds.
type chat struct{}

var _ protocol = chat{}

func (chat) habits() habits {
	return habits{streamType: typeEvents, streamAlive: ": keep-alive\n\n", wholeAlive: "\n"}
}

// Replies as they are sent; the order of the fields is part of their bytes.
type (
	completion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int          `json:"created"` // always 0: replies know no clock
		Model   string       `json:"model"`
		Choices []choice     `json:"choices"`
		Usage   *usageReport `json:"usage,omitempty"`
	}
	choice struct {
		Index   int             `json:"index"`
		Message json.RawMessage `json:"message,omitempty"`
		Delta   *delta          `json:"delta,omitempty"`
		Finish  *string         `json:"finish_reason"`
	}
	assistant struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   string     `json:"refusal,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		Calls     []toolCall `json:"tool_calls,omitempty"`
	}
	delta struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content,omitempty"`
		Refusal   string     `json:"refusal,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		Calls     []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		Index    *int     `json:"index,omitempty"` // in a stream
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	usageReport struct {
		Prompt        int64 `json:"prompt_tokens"`
		Hit           int64 `json:"prompt_cache_hit_tokens"`
		Miss          int64 `json:"prompt_cache_miss_tokens"`
		PromptDetails struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Completion        int64 `json:"completion_tokens"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Total int64 `json:"total_tokens"`
	}
)

func (chat) read(_ http.Header, body []byte) (request, error) {
	var in struct {
		Model         string            `json:"model"`
		Messages      []json.RawMessage `json:"messages"`
		Tools         json.RawMessage   `json:"tools"`
		Stream        bool              `json:"stream"`
		StreamOptions *struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is no chat request: %w", err)
	}
	switch {
	case len(in.Messages) == 0:
		return request{}, errors.New("messages: at least one is needed")
	case in.Tools != nil && !isFilled(in.Tools):
		return request{}, errors.New("tools: a list with at least one tool, or no field at all")
	case in.StreamOptions != nil && !in.Stream:
		return request{}, errors.New("stream_options: only allowed when stream is true")
	}
	r := request{model: in.Model, streams: in.Stream, pieces: [][]byte{in.Tools}}
	r.counts = in.StreamOptions != nil && in.StreamOptions.Usage
	var p pairing
	for i, raw := range in.Messages {
		if err := r.message(raw, &p); err != nil {
			return request{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	r.cached = len(r.pieces)
	return r, p.end()
}

// message takes the next message in.
func (r *request) message(raw json.RawMessage, p *pairing) error {
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		CallID  string          `json:"tool_call_id"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	text, err := contentText(m.Content)
	if err != nil {
		return err
	}
	if m.Role == "tool" {
		r.pieces = append(r.pieces, raw)
		r.fromTool(text)
		return p.answered(m.CallID)
	}
	if err := p.end(); err != nil {
		return err
	}
	switch m.Role {
	case "system":
		r.fromSystem(text)
	case "user":
		r.fromUser(text)
	case "assistant":
		var calls []call
		for _, c := range m.Calls {
			if c.ID == "" || slices.Contains(p.open, c.ID) {
				return fmt.Errorf("call id %q is empty or there twice", c.ID)
			}
			p.called(c.ID)
			args := string(c.Function.Arguments)
			_ = json.Unmarshal(c.Function.Arguments, &args) // an object stays as it is
			calls = append(calls, call{c.Function.Name, args})
		}
		r.fromModel(text, calls...)
		// A reply that was streamed is put together by the client, in its own order.
		raw = again(raw, &assistant{})
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	r.pieces = append(r.pieces, raw)
	return nil
}

// message is the answer as the conversation will hold it.
func (chat) message(a answer) ([]byte, error) {
	m := assistant{Role: "assistant", Content: a.content(), Refusal: a.refusal, Reasoning: a.reasoning}
	for i, c := range a.calls {
		m.Calls = append(m.Calls, toolCall{ID: a.callID("call", i), Type: "function", Function: function{c.name, c.args}})
	}
	return encode(m)
}

// content is the text that is not left out: only a refusal has none at all.
func (a answer) content() *string {
	if a.say == nil && a.refusal == "" {
		return new(string)
	}
	return a.say
}

func (p chat) pieces(a answer) ([][]byte, error) {
	raw, err := p.message(a)
	return [][]byte{raw}, err
}

func (p chat) whole(a answer) ([]byte, error) {
	raw, err := p.message(a)
	if err != nil {
		return nil, err
	}
	out := p.completion(a, "chat.completion")
	out.Choices, out.Usage = []choice{{Message: raw, Finish: &a.finish}}, p.usage(a.figures)
	return encode(out)
}

func (chat) completion(a answer, object string) completion {
	return completion{ID: a.id("chatcmpl"), Object: object, Model: a.model}
}

func (chat) usage(f figures) *usageReport {
	u := usageReport{Prompt: f.input, Hit: f.hit, Miss: f.input - f.hit, Completion: f.output, Total: f.input + f.output}
	u.PromptDetails.Cached = f.hit
	u.CompletionDetails.Reasoning = f.reasoning
	return &u
}

func (p chat) stream(a answer) ([][]byte, error) {
	var s sequence
	send := func(d delta, finish *string) {
		c := p.completion(a, "chat.completion.chunk")
		c.Choices = []choice{{Delta: &d, Finish: finish}}
		s.add("data: ", c, "\n\n")
	}
	first := delta{Role: "assistant"}
	if a.content() != nil {
		first.Content = new(string)
	}
	send(first, nil)
	for _, text := range bits(a.reasoning) {
		send(delta{Reasoning: text}, nil)
	}
	if a.say != nil {
		for _, text := range bits(*a.say) {
			send(delta{Content: &text}, nil)
		}
	}
	for _, text := range bits(a.refusal) {
		send(delta{Refusal: text}, nil)
	}
	for i, c := range a.calls {
		send(delta{Calls: []toolCall{{Index: &i, ID: a.callID("call", i), Type: "function", Function: function{Name: c.name}}}}, nil)
		for _, text := range bits(c.args) {
			send(delta{Calls: []toolCall{{Index: &i, Function: function{Arguments: text}}}}, nil)
		}
	}
	send(delta{}, &a.finish)
	if a.counts {
		c := p.completion(a, "chat.completion.chunk")
		c.Choices, c.Usage = []choice{}, p.usage(a.figures)
		s.add("data: ", c, "\n\n")
	}
	s.chunks = append(s.chunks, []byte("data: [DONE]\n\n"))
	return s.chunks, s.err
}

func (chat) problem(_ int, kind, words string) []byte {
	var p struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}
	p.Error.Message, p.Error.Type = words, kind
	data, _ := encode(p) // two strings always encode
	return data
}
