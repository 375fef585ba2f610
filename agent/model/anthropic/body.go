package anthropic

import (
	"errors"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/wire"
)

var (
	comma = []byte(",")
	end   = []byte("]}]}")

	// A cache breakpoint is the last field of a content block.
	marker    = []byte(`,"cache_control":{"type":"ephemeral"}}`)
	system    = []byte(`"system":[`)
	systemEnd = []byte(`,"cache_control":{"type":"ephemeral"}}],`)
)

// turns are the openings of a message, by who speaks and whether it is the first.
var turns = map[model.Role]map[bool][]byte{
	model.User:      {true: []byte(`"messages":[{"role":"user","content":[`), false: []byte(`]},{"role":"user","content":[`)},
	model.Assistant: {true: []byte(`"messages":[{"role":"assistant","content":[`), false: []byte(`]},{"role":"assistant","content":[`)},
}

// A layout says where the parts of a request stand in the list of its messages. Messages
// without blocks are left out: the API refuses empty ones.
type layout struct {
	messages []model.Message
	systems  int // how many messages in front are the system's
	last     int // the last message that has blocks
	lastSys  int // the last of the system's that has blocks, -1 if none
}

func arrange(messages []model.Message) (layout, error) {
	l := layout{messages: messages, last: -1, lastSys: -1}
	for i, m := range messages {
		switch {
		case len(m.Raw) < 2 || m.Raw[0] != '[' || m.Raw[len(m.Raw)-1] != ']':
			return l, fmt.Errorf("message %d (%s) was not encoded", i, m.Role)
		case m.Role == model.System && i > l.systems:
			return l, fmt.Errorf("message %d: the system speaks only at the beginning", i)
		case m.Role == model.System:
			l.systems++
			if l.full(i) {
				l.lastSys = i
			}
		case l.full(i):
			l.last = i
		}
	}
	if l.last < 0 {
		return l, errors.New("the request has no messages")
	}
	return l, nil
}

func (l layout) full(i int) bool { return len(l.messages[i].Raw) > len("[]") }

// speaker is who a message is from in the API's eyes: tool results come from the user.
func (l layout) speaker(i int) model.Role {
	if r := l.messages[i].Role; r != model.ToolRole {
		return r
	}
	return model.User
}

// before returns the message with blocks that comes before i on the same side of the
// system's end, -1 if none does.
func (l layout) before(i int) int {
	first := 0
	if i >= l.systems {
		first = l.systems
	}
	for j := i - 1; j >= first; j-- {
		if l.full(j) {
			return j
		}
	}
	return -1
}

// opening is what stands between message i and what is before it.
func (l layout) opening(i int) []byte {
	prev := l.before(i)
	switch {
	case i < l.systems && prev < 0:
		return system
	case i < l.systems, prev >= 0 && l.speaker(i) == l.speaker(prev):
		return comma
	}
	return turns[l.speaker(i)][prev < 0]
}

// blocks are a message's content blocks without the brackets around them; marked ones end
// before the brace that the marker closes.
func (l layout) blocks(i int) []byte {
	raw := l.messages[i].Raw
	if l.marks(i) {
		return raw[1 : len(raw)-2]
	}
	return raw[1 : len(raw)-1]
}

// marks reports whether a breakpoint stands at message i's end. Only messages that the
// harness encoded get one: their last byte is known, and thinking may not be marked.
func (l layout) marks(i int) bool {
	return i == l.lastSys || i == l.last && l.speaker(i) == model.User
}

// closing is what follows message i's blocks.
func (l layout) closing(i int) []byte {
	switch {
	case i == l.lastSys:
		return systemEnd
	case l.marks(i):
		return marker
	}
	return nil
}

// body returns a request's body: the head, the fields that differ between requests, the
// tools, a comma, three pieces for each message, the end.
func (c *Client) body(req model.Request) (wire.Body, error) {
	l, err := arrange(req.Messages)
	if err != nil {
		return wire.Body{}, err
	}
	const front, each = 4, 3
	fields := c.fields(req)
	last := front + each*len(req.Messages)
	return wire.Body{Pieces: last + 1, Piece: func(p int) []byte {
		switch p {
		case 0:
			return c.head
		case 1:
			return fields
		case 2:
			return req.Tools
		case 3:
			return comma
		case last:
			return end
		}
		i, part := (p-front)/each, (p-front)%each
		switch {
		case !l.full(i):
			return nil
		case part == 0:
			return l.opening(i)
		case part == 1:
			return l.blocks(i)
		}
		return l.closing(i)
	}}, nil
}

// fields are the fields of a request that differ between requests; the name of the tools'
// field is the last of them.
func (c *Client) fields(req model.Request) []byte {
	limit := req.MaxTokens
	if limit <= 0 {
		limit = maxTokens
	}
	limit += c.thinking.budget // the API counts thinking too; what was asked for is the answer
	out := fmt.Appendf(nil, `,"max_tokens":%d`, limit)
	effort, schema := c.thinking.effort, req.Schema
	switch {
	case effort != "" && len(schema) > 0:
		out = fmt.Appendf(out, `,"output_config":{"effort":%q,"format":{"type":"json_schema","schema":%s}}`, effort, schema)
	case effort != "":
		out = fmt.Appendf(out, `,"output_config":{"effort":%q}`, effort)
	case len(schema) > 0:
		out = fmt.Appendf(out, `,"output_config":{"format":{"type":"json_schema","schema":%s}}`, schema)
	}
	if len(req.Tools) > 0 {
		if req.NoCalls {
			out = append(out, `,"tool_choice":{"type":"none"}`...)
		}
		out = append(out, `,"tools":`...)
	}
	return out
}
