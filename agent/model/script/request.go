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

// A request is what the rules look at of one request, whatever protocol it came in, and
// what the form of the reply follows from.
type request struct {
	agent string // the asking agent's ordinal; "x" without the header
	turn  int    // which reply of the agent is asked for
	named bool   // the header was there

	model   string
	streams bool  // the reply is wanted piece by piece
	counts  bool  // a stream ends with token counts
	window  int64 // how many tokens of the input the model sees, 0 for all

	// pieces are the tools, then the conversation, in a form that is equal where the
	// provider takes it for equal. The first cached of them are what its cache looks at.
	pieces [][]byte
	cached int

	texts                        []string // of the whole conversation, calls included
	user, task, results          string
	hasUser, hasTask, hasResults bool
}

// taskMark is the line that a child's task follows in its first message. What stands above
// it names the tasks of others too, and must not be taken for the child's own.
const taskMark = "\nTask:\n"

func (r *request) taskText() string {
	if r.hasTask {
		return r.task
	}
	return r.user
}

// conversation is all that was said, one text after the other; calls stand there as
// name and arguments.
func (r *request) conversation() string { return strings.Join(r.texts, "\n") }

// fromSystem, fromUser, fromModel and fromTool note what was said, in the order it was;
// rules ask about it.
func (r *request) fromSystem(text string) { r.texts = append(r.texts, text) }

func (r *request) fromUser(text string) {
	r.texts = append(r.texts, text)
	r.user, r.hasUser = text, true
	if _, task, found := strings.Cut(text, taskMark); found {
		r.task, r.hasTask = task, true
	}
}

func (r *request) fromModel(text string, calls ...call) {
	r.texts = append(r.texts, text)
	for _, c := range calls {
		r.texts = append(r.texts, c.name+" "+c.args)
	}
	r.results, r.hasResults = "", false
	r.turn++
}

func (r *request) fromTool(text string) {
	r.texts = append(r.texts, text)
	if r.hasResults {
		r.results += "\n"
	}
	r.results, r.hasResults = r.results+text, true
}

var originForm = regexp.MustCompile(`^(\d+(?:\.\d+)*); turn=([1-9]\d*)$`)

// origin reads the header Skein-Agent, such as "0.2; turn=3".
func (r *request) origin(header string) error {
	if header == "" {
		r.agent = "x"
		r.turn++ // so far the replies in the conversation were counted
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

// pairing checks that every tool call is answered once, before anything else is said. The
// calls are known by whatever the protocol's results name them by.
type pairing struct{ open []string }

// called notes a call that is to be answered.
func (p *pairing) called(id string) { p.open = append(p.open, id) }

// answered takes a result.
func (p *pairing) answered(id string) error {
	i := slices.Index(p.open, id)
	if i < 0 {
		return fmt.Errorf("a result for %q, which is no unanswered call of the last reply", id)
	}
	p.open = slices.Delete(p.open, i, i+1)
	return nil
}

// end is an error if calls are still to be answered.
func (p *pairing) end() error {
	if len(p.open) > 0 {
		return fmt.Errorf("no result for the calls %s", strings.Join(p.open, ", "))
	}
	return nil
}
