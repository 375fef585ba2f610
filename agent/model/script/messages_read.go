package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// cacheMarks is how many places of a request may be marked for the cache.
const cacheMarks = 4

func (messages) read(header http.Header, body []byte) (request, error) {
	var in struct {
		Model     string          `json:"model"`
		MaxTokens *int64          `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
		Thinking struct {
			Type   string `json:"type"`
			Budget int64  `json:"budget_tokens"`
		} `json:"thinking"`
		Temperature *float64 `json:"temperature"`
		Stream      bool     `json:"stream"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is no messages request: %w", err)
	}
	thinks := in.Thinking.Type == "enabled"
	switch {
	case header.Get("Anthropic-Version") == "":
		return request{}, errors.New("anthropic-version: header is required")
	case in.Model == "":
		return request{}, errors.New("model: field required")
	case in.MaxTokens == nil || *in.MaxTokens < 1:
		return request{}, errors.New("max_tokens: a number from 1 is required")
	case len(in.Messages) == 0:
		return request{}, errors.New("messages: at least one message is required")
	case thinks && in.Thinking.Budget < 1024:
		return request{}, errors.New("thinking.budget_tokens: at least 1024")
	case thinks && in.Thinking.Budget >= *in.MaxTokens:
		return request{}, errors.New("max_tokens must be greater than thinking.budget_tokens")
	case thinks && in.Temperature != nil && *in.Temperature != 1:
		return request{}, errors.New("temperature may only be set to 1 when thinking is enabled")
	}
	c := talk{request: request{model: in.Model, streams: in.Stream}}
	for i, raw := range in.Tools {
		if err := c.tool(raw); err != nil {
			return request{}, fmt.Errorf("tools.%d: %w", i, err)
		}
	}
	if err := c.say("system", in.System, false); err != nil {
		return request{}, fmt.Errorf("system: %w", err)
	}
	for i, m := range in.Messages {
		err := c.say(m.Role, m.Content, i == len(in.Messages)-1)
		if i == 0 && m.Role != "user" && err == nil {
			err = errors.New("the first message must use the \"user\" role")
		}
		if err != nil {
			return request{}, fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if c.marks > cacheMarks {
		return request{}, fmt.Errorf("a maximum of %d blocks with cache_control may be provided, found %d", cacheMarks, c.marks)
	}
	return c.request, c.end()
}

// A talk is a request while its blocks are read.
type talk struct {
	request
	pairing
	marks int
	role  string // of the last message
}

// A contentBlock is one part of a message's content. What is not named here is not looked at.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	UseID     string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// piece notes a part of the request. A mark for the cache is no part of what is cached: it
// moves from request to request.
func (c *talk) piece(role string, raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return errors.New("it is no object")
	}
	_, marked := fields["cache_control"]
	delete(fields, "cache_control")
	data, err := encode(fields)
	if err != nil {
		return err
	}
	c.pieces = append(c.pieces, append([]byte(role+"\n"), data...))
	if marked {
		c.marks++
		c.cached = len(c.pieces)
	}
	return nil
}

func (c *talk) tool(raw json.RawMessage) error {
	var t struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	}
	switch err := json.Unmarshal(raw, &t); {
	case err != nil:
		return err
	case t.Name == "":
		return errors.New("name: field required")
	case !isObject(string(t.Schema)):
		return errors.New("input_schema: an object is required")
	}
	return c.piece("tool", raw)
}

// say takes in the content of the next message, or of the system prompt.
func (c *talk) say(role string, content json.RawMessage, last bool) error {
	if role == "system" && len(content) == 0 {
		return nil
	}
	var text string
	blocks := []json.RawMessage{nil}
	if json.Unmarshal(content, &text) == nil { // short for one block of text
		data, err := encode(map[string]string{"type": "text", "text": text})
		if err != nil {
			return err
		}
		blocks[0] = data
	} else if err := json.Unmarshal(content, &blocks); err != nil {
		return errors.New("content is neither a text nor a list of blocks")
	}
	switch {
	case role != "system" && role != "user" && role != "assistant":
		return fmt.Errorf("unexpected role %q", role)
	case len(blocks) == 0 && (!last || role != "assistant"):
		return errors.New("all messages must have content, except for an assistant message at the end")
	}
	repeated := role == c.role // neighbours of one role are one message
	c.role = role
	var said []string
	var calls []call
	for i, raw := range blocks {
		var b contentBlock
		err := json.Unmarshal(raw, &b)
		if err == nil {
			err = c.block(role, b, i == 0 && !repeated)
		}
		if err == nil {
			err = c.piece(role, raw)
		}
		if err != nil {
			return fmt.Errorf("content.%d: %w", i, err)
		}
		switch b.Type {
		case "text":
			said = append(said, b.Text)
		case "tool_use":
			calls = append(calls, call{b.Name, string(b.Input)})
		}
	}
	switch text := strings.Join(said, "\n"); {
	case role == "system":
		c.fromSystem(text)
	case role == "assistant":
		c.fromModel(text, calls...)
	case len(said) > 0:
		c.fromUser(text)
	}
	return nil
}

var useID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// block checks that a block may stand where it does.
func (c *talk) block(role string, b contentBlock, first bool) error {
	if b.Type == "tool_result" && role == "user" {
		text, err := contentText(b.Content)
		if err != nil {
			return err
		}
		c.fromTool(text)
		return c.answered(b.UseID)
	}
	if err := c.end(); err != nil && (role != "assistant" || first) {
		return err // results come first in the message after the calls
	}
	switch b.Type {
	case "text":
		if b.Text == "" {
			return errors.New("text content blocks must be non-empty")
		}
		return nil
	case "thinking":
		if role == "assistant" && b.Signature != sign(b.Thinking) {
			return errors.New("invalid signature in thinking block")
		}
	case "tool_use":
		switch {
		case !useID.MatchString(b.ID):
			return fmt.Errorf("tool_use.id: %q does not match the pattern %s", b.ID, useID)
		case slices.Contains(c.open, b.ID):
			return fmt.Errorf("tool_use.id: %q is there twice", b.ID)
		case !isObject(string(b.Input)):
			return errors.New("tool_use.input: an object is required")
		}
		c.called(b.ID)
	case "redacted_thinking":
	default:
		return fmt.Errorf("unexpected block %q", b.Type)
	}
	if role != "assistant" {
		return fmt.Errorf("a block %q belongs to the assistant", b.Type)
	}
	return nil
}
