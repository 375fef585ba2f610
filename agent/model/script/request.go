package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A request is what the rules look at of one request.
type request struct {
	agent string // the asking agent's ordinal; "x" without the header
	turn  int    // which reply of the agent is asked for
	named bool   // the header was there

	model  string
	pieces [][]byte // the tools, then each message, as they were sent

	user, task, results          string
	hasUser, hasTask, hasResults bool
}

// taskMark is the line that a child's task follows in its first message. What stands above
// it names the tasks of others too, and must not be taken for the child's own.
const taskMark = "\nTask:\n"

func (r request) taskText() string {
	if r.hasTask {
		return r.task
	}
	return r.user
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// read takes a request apart. It refuses what real providers refuse, so that no harness
// passes its tests with conversations that nobody else would accept.
func read(header string, body []byte) (request, error) {
	var in struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
		Tools    json.RawMessage   `json:"tools"`
		Stream   bool              `json:"stream"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, fmt.Errorf("the body is no chat request: %w", err)
	}
	var tools []json.RawMessage
	switch {
	case in.Stream:
		return request{}, errors.New("stream: this server does not stream")
	case len(in.Messages) == 0:
		return request{}, errors.New("messages: at least one is needed")
	case in.Tools != nil && (json.Unmarshal(in.Tools, &tools) != nil || len(tools) == 0):
		return request{}, errors.New("tools: a list with at least one tool, or no field at all")
	}
	r := request{agent: "x", model: in.Model, pieces: [][]byte{in.Tools}}
	var p pairing
	replies := 0
	for i, raw := range in.Messages {
		var m message
		err := json.Unmarshal(raw, &m)
		if err == nil {
			err = p.next(m)
		}
		if err == nil {
			err = r.add(m)
		}
		if err != nil {
			return request{}, fmt.Errorf("messages[%d]: %w", i, err)
		}
		if m.Role == "assistant" {
			replies++
		}
		r.pieces = append(r.pieces, raw)
	}
	if err := p.end(); err != nil {
		return request{}, err
	}
	r.turn = replies + 1
	return r, r.origin(header)
}

// add keeps what rules ask about: the last user message, the last task, and the results since the last reply.
func (r *request) add(m message) error {
	text, err := contentText(m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "user":
		r.user, r.hasUser = text, true
		if _, task, found := strings.Cut(text, taskMark); found {
			r.task, r.hasTask = task, true
		}
	case "assistant":
		r.results, r.hasResults = "", false
	case "tool":
		if r.hasResults {
			r.results += "\n"
		}
		r.results, r.hasResults = r.results+text, true
	}
	return nil
}

var originForm = regexp.MustCompile(`^(\d+(?:\.\d+)*); turn=([1-9]\d*)$`)

// origin reads the header Skein-Agent, such as "0.2; turn=3".
func (r *request) origin(header string) error {
	if header == "" {
		return nil
	}
	m := originForm.FindStringSubmatch(header)
	if m == nil {
		return fmt.Errorf("header Skein-Agent: %q is not like \"0.2; turn=3\"", header)
	}
	turn, err := strconv.Atoi(m[2])
	if err != nil {
		return fmt.Errorf("header Skein-Agent: %w", err)
	}
	r.agent, r.turn, r.named = m[1], turn, true
	return nil
}

func contentText(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil { // null leaves s empty
		return s, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", errors.New("content is neither a text nor a list of parts")
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// pairing checks that every tool call is answered once, before anything else is said.
type pairing struct{ open []string }

func (p *pairing) next(m message) error {
	switch m.Role {
	case "tool":
		i := slices.Index(p.open, m.CallID)
		if i < 0 {
			return fmt.Errorf("a result for %q, which is no unanswered call of the last reply", m.CallID)
		}
		p.open = slices.Delete(p.open, i, i+1)
		return nil
	case "system", "user", "assistant":
	default:
		return fmt.Errorf("unknown role %q", m.Role)
	}
	if err := p.end(); err != nil {
		return err
	}
	for _, c := range m.Calls {
		if c.ID == "" || slices.Contains(p.open, c.ID) {
			return fmt.Errorf("call id %q is empty or there twice", c.ID)
		}
		p.open = append(p.open, c.ID)
	}
	return nil
}

func (p *pairing) end() error {
	if len(p.open) > 0 {
		return fmt.Errorf("no result for the calls %s", strings.Join(p.open, ", "))
	}
	return nil
}
