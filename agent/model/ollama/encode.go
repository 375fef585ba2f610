package ollama

import (
	"encoding/json"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// Messages as they are sent. The order of the fields is part of the bytes that caches
// compare: do not change it.
type (
	textMessage struct {
		Role    model.Role `json:"role"`
		Content string     `json:"content"`
	}
	assistantMessage struct {
		Role    model.Role `json:"role"`
		Content string     `json:"content"`
		Calls   []call     `json:"tool_calls,omitempty"`
	}
	toolMessage struct {
		Role    model.Role `json:"role"`
		Name    string     `json:"tool_name"`
		Content string     `json:"content"`
	}
	call struct {
		Function callFunc `json:"function"`
	}
	callFunc struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	tool struct {
		Type     string   `json:"type"`
		Function toolFunc `json:"function"`
	}
	toolFunc struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// Encode implements [model.Client]. The dialect has no word for a failed tool result:
// the text has to say it.
func (c *Client) Encode(m model.Message) (json.RawMessage, error) {
	switch m.Role {
	case model.System, model.User:
		return rawjson.Encode(textMessage{m.Role, m.Text})
	case model.Assistant:
		out := assistantMessage{Role: m.Role, Content: m.Text}
		for _, tc := range m.Calls {
			args, err := wire.Object(tc.Args)
			if err != nil {
				return nil, err
			}
			out.Calls = append(out.Calls, call{callFunc{tc.Name, args}})
		}
		return rawjson.Encode(out)
	case model.ToolRole:
		name := m.Name
		if name == "" { // the model named no tool: that is its fault, and it is told so
			name = "unnamed"
		}
		return rawjson.Encode(toolMessage{m.Role, name, m.Text})
	}
	return nil, fmt.Errorf("unknown role %q", m.Role)
}

// EncodeTools implements [model.Client]. No tools at all are nil: the field is not sent.
func (c *Client) EncodeTools(tools []model.Tool) (json.RawMessage, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	out := make([]tool, 0, len(tools))
	for _, t := range tools {
		schema, err := wire.Schema(t)
		if err != nil {
			return nil, err
		}
		out = append(out, tool{"function", toolFunc{t.Name, t.Description, schema}})
	}
	return rawjson.Encode(out)
}
