package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goccy/go-yaml"
)

// The reply as it is sent; the order of the fields is part of its bytes.
type (
	completion struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int          `json:"created"` // always 0: replies know no clock
		Model   string       `json:"model"`
		Choices [1]choice    `json:"choices"`
		Usage   *usageReport `json:"usage"`
	}
	choice struct {
		Index   int             `json:"index"`
		Message json.RawMessage `json:"message"`
		Finish  string          `json:"finish_reason"`
	}
	assistant struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   string     `json:"refusal,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		Calls     []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name"`
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

// message gives the assistant message that a rule answers with, and the finish reason.
func (r *rule) message(req request, got captures) (raw []byte, finish string, err error) {
	m := assistant{Role: "assistant", Reasoning: got.expand(r.Reasoning), Refusal: got.expand(r.Refusal)}
	if r.Say != nil {
		say := got.expand(*r.Say)
		m.Content = &say
	} else if r.Refusal == "" {
		m.Content = new(string)
	}
	if m.Calls, err = r.toolCalls(req, got); err != nil {
		return nil, "", err
	}
	finish = "stop"
	if len(m.Calls) > 0 {
		finish = "tool_calls"
	}
	if r.Finish != "" {
		finish = r.Finish
	}
	raw, err = encode(m)
	return raw, finish, err
}

func (r *rule) toolCalls(req request, got captures) ([]toolCall, error) {
	var out []toolCall
	add := func(name, arguments string) {
		id := fmt.Sprintf("call_%s_%d_%d", req.agent, req.turn, len(out)+1)
		out = append(out, toolCall{id, "function", function{name, arguments}})
	}
	calls := r.Calls
	if r.Call != nil {
		calls = []yaml.MapSlice{r.Call}
	}
	for _, c := range calls {
		if len(c) != 1 {
			return nil, fmt.Errorf("a call names one tool, this one %d: list several under calls", len(c))
		}
		args, err := arguments(c[0].Value, got)
		if err != nil {
			return nil, fmt.Errorf("call %v: %w", c[0].Key, err)
		}
		add(fmt.Sprint(c[0].Key), args)
	}
	if r.CallRaw != nil {
		add(r.CallRaw.Name, got.expand(r.CallRaw.Arguments))
	}
	return out, nil
}

// arguments gives a call's arguments as JSON, in the order in which the script has them.
func arguments(v any, got captures) (string, error) {
	switch v.(type) {
	case nil:
		return "{}", nil
	case yaml.MapSlice:
	default:
		return "", errors.New("arguments are a map; text that is no JSON goes into call_raw")
	}
	var buf bytes.Buffer
	if err := write(&buf, v, got); err != nil {
		return "", err
	}
	return buf.String(), nil
}

func write(buf *bytes.Buffer, v any, got captures) error {
	switch v := v.(type) {
	case yaml.MapSlice:
		return writeList(buf, "{}", len(v), func(i int) error {
			key, err := encode(fmt.Sprint(v[i].Key))
			if err != nil {
				return err
			}
			buf.Write(append(key, ':'))
			return write(buf, v[i].Value, got)
		})
	case []any:
		return writeList(buf, "[]", len(v), func(i int) error { return write(buf, v[i], got) })
	case string:
		return writeValue(buf, got.expand(v))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%v is no number in JSON", v)
		}
	}
	return writeValue(buf, v)
}

func writeList(buf *bytes.Buffer, brackets string, n int, item func(i int) error) error {
	buf.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := item(i); err != nil {
			return err
		}
	}
	buf.WriteByte(brackets[1])
	return nil
}

func writeValue(buf *bytes.Buffer, v any) error {
	b, err := encode(v)
	buf.Write(b)
	return err
}

// encode gives v's JSON with <, > and & as they are.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
