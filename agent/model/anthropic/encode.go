package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// Content blocks as they are sent. The order of the fields is part of the bytes that caches
// compare: do not change it.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	useBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultBlock struct {
		Type    string `json:"type"`
		ID      string `json:"tool_use_id"`
		Content string `json:"content,omitempty"`
		IsError bool   `json:"is_error,omitempty"`
	}
	tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Cache       *cacheControl   `json:"cache_control,omitempty"`
	}
	cacheControl struct {
		Type string `json:"type"`
	}
)

// Encode implements [model.Client]. A text of white space only has no block: the API refuses
// it, and a message without blocks is not sent.
func (c *Client) Encode(m model.Message) (json.RawMessage, error) {
	blocks := []any{}
	if strings.TrimSpace(m.Text) != "" && m.Role != model.ToolRole {
		blocks = append(blocks, textBlock{"text", m.Text})
	}
	switch m.Role {
	case model.System, model.User:
	case model.Assistant:
		for _, tc := range m.Calls {
			input, err := wire.Object(tc.Args)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, useBlock{"tool_use", callID(tc.ID), tc.Name, input})
		}
	case model.ToolRole:
		if m.CallID == "" {
			return nil, errors.New("a tool message without the id of its call")
		}
		blocks = append(blocks, resultBlock{"tool_result", callID(m.CallID), m.Text, m.IsError})
	default:
		return nil, fmt.Errorf("unknown role %q", m.Role)
	}
	return rawjson.Encode(blocks)
}

// callID gives an id in the letters that the API takes; other providers use others.
func callID(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
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
		out = append(out, tool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	out[len(out)-1].Cache = &cacheControl{"ephemeral"}
	return rawjson.Encode(out)
}
