package script

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// messages is the protocol of Anthropic's Messages.
type messages struct{}

var _ protocol = messages{}

func (messages) habits() habits {
	return habits{streamType: typeEvents, streamAlive: "event: ping\ndata: {\"type\": \"ping\"}\n\n"}
}

// sign gives the signature without which a thinking block is not accepted back.
func sign(thinking string) string {
	sum := sha256.Sum256([]byte("scripted\n" + thinking))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// The reply as it is sent; the order of the fields is part of its bytes.
type (
	messageReply struct {
		ID           string        `json:"id"`
		Type         string        `json:"type"`
		Role         string        `json:"role"`
		Model        string        `json:"model"`
		Content      []any         `json:"content"`
		StopReason   *string       `json:"stop_reason"`
		StopSequence *string       `json:"stop_sequence"`
		Usage        messagesUsage `json:"usage"`
	}
	messagesUsage struct {
		Input  int64 `json:"input_tokens"`
		Write  int64 `json:"cache_creation_input_tokens"`
		Read   int64 `json:"cache_read_input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	useBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// content gives the blocks of the answer. A text of no length is no block.
func (messages) content(a answer) []any {
	out := []any{}
	if a.reasoning != "" {
		out = append(out, thinkingBlock{"thinking", a.reasoning, sign(a.reasoning)})
	}
	if text := a.text(); text != "" {
		out = append(out, textBlock{"text", text})
	}
	for i, c := range a.calls {
		id := strings.ReplaceAll(a.callID("toolu", i), ".", "-") // an ordinal's dots are not allowed
		out = append(out, useBlock{"tool_use", id, c.name, json.RawMessage(c.args)})
	}
	return out
}

// text is what protocols say that have no words of their own for a refusal.
func (a answer) text() string {
	if a.say == nil {
		return a.refusal
	}
	return *a.say + a.refusal
}

func (a answer) stopReason() string {
	switch {
	case a.refusal != "" && a.finish == "stop", a.finish == "content_filter":
		return "refusal"
	case a.finish == "tool_calls":
		return "tool_use"
	case a.finish == "length":
		return "max_tokens"
	case a.finish == "stop":
		return "end_turn"
	}
	return a.finish
}

var errNoObject = errors.New("this protocol cannot say arguments that are no JSON object")

func (p messages) pieces(a answer) ([][]byte, error) {
	var c talk
	for _, b := range p.content(a) {
		if u, ok := b.(useBlock); ok && !isObject(string(u.Input)) {
			u.Input = json.RawMessage("{}") // what the client makes of it is its own affair
			b = u
		}
		raw, err := encode(b)
		if err == nil {
			err = c.piece("assistant", raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.pieces, nil
}

func (p messages) reply(a answer) messageReply {
	f := a.figures
	return messageReply{
		ID: a.id("msg"), Type: "message", Role: "assistant", Model: a.model, Content: []any{},
		Usage: messagesUsage{Input: f.input - max(f.cached, f.hit), Write: max(0, f.cached-f.hit), Read: f.hit, Output: f.output},
	}
}

func (p messages) whole(a answer) ([]byte, error) {
	for _, c := range a.calls {
		if !isObject(c.args) {
			return nil, errNoObject
		}
	}
	out := p.reply(a)
	reason := a.stopReason()
	out.Content, out.StopReason = p.content(a), &reason
	return encode(out)
}

func (p messages) problem(status int, _, words string) []byte {
	kind := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
	}[status]
	switch {
	case kind != "":
	case status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	data, _ := encode(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": words}}) // texts always encode
	return data
}
