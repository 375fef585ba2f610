package modeltest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"skein/agent/model"
)

// A replyCase is one rule and what the client makes of its reply. Each case is also sent
// back, with results for its calls: the server accepts it, and got it byte for byte.
type replyCase struct {
	name      string
	rule      string // the answering fields
	text      string
	reasoning string           // as a stream tells it
	calls     []model.ToolCall // ids are compared only where they are given
	finish    model.Finish
	why       string
	raw       string   // if not empty, the bytes that have to be kept
	keeps     []string // parts of the kept bytes
	silent    bool     // nothing is streamed
}

func (m *mode) replies() []replyCase {
	d := m.dialect
	cases := []replyCase{
		{name: "text", rule: `say: "a <b> & c"`, text: "a <b> & c", finish: model.FinishStop},
		{name: "long text", rule: `say: "` + strings.Repeat("so and so, ", 100) + `"`, text: strings.Repeat("so and so, ", 100), finish: model.FinishStop},
		{name: "empty content", rule: `say: ""`, finish: model.FinishStop},
		{name: "reasoning and text", rule: `reasoning: "let me think about it", say: done`, text: "done", reasoning: "let me think about it", finish: model.FinishStop},
		{name: "reasoning only", rule: `reasoning: "so much to think", finish: length`, reasoning: "so much to think", finish: model.FinishLength},
		{name: "length", rule: `say: "and then", finish: length`, text: "and then", finish: model.FinishLength},
		{name: "refusal", rule: `refusal: "I will not"`, text: "I will not", finish: d.refusal, why: d.refusalWhy},
		{name: "filtered", rule: `say: "", finish: content_filter`, finish: d.filtered, why: d.filteredWhy},
		{name: "a reason of its own", rule: `say: "half a", finish: strange_reason`, text: "half a", finish: model.FinishOther, why: "strange_reason"},
		{
			name: "one call", rule: `call: {bash: {timeout: 5, command: "a < b && c", at: 1.50}}`, finish: model.FinishToolCalls,
			calls: []model.ToolCall{{ID: d.callID, Name: "bash", Args: `{"timeout":5,"command":"a < b && c","at":1.5}`}},
		},
		{name: "eight calls", rule: eight(), finish: model.FinishToolCalls, calls: eightCalls()},
		{
			name: "text beside a call", rule: `say: "I look.", call: {list_files: {}}, reasoning: "where?"`, text: "I look.", reasoning: "where?",
			finish: model.FinishToolCalls, calls: []model.ToolCall{{Name: "list_files", Args: "{}"}},
		},
	}
	if d.badArgs[m.stream] {
		cases = append(cases, replyCase{
			name: "arguments that are no JSON", rule: `call_raw: {name: bash, arguments: '{"command": '}`,
			finish: model.FinishToolCalls, calls: []model.ToolCall{{Name: "bash", Args: `{"command": `}},
		})
	}
	if m.stream {
		return append(cases, d.streamed...)
	}
	return append(cases, d.whole...)
}

func eight() string {
	rule := "calls: ["
	for i := range 8 {
		rule += fmt.Sprintf("{read_file: {path: f%d}}, ", i+1)
	}
	return rule + "]"
}

func eightCalls() []model.ToolCall {
	var out []model.ToolCall
	for i := range 8 {
		out = append(out, model.ToolCall{Name: "read_file", Args: fmt.Sprintf(`{"path":"f%d"}`, i+1)})
	}
	return out
}

func (tc replyCase) run(t *testing.T, m *mode) {
	srv, c := m.serve(t, "- {when: {turn: 1}, "+tc.rule+"}\n- say: thanks\n")
	var h heard
	reply, tr, err := ask(t.Context(), t, c, "hello", &h)
	if err != nil {
		t.Fatalf("Exchange = %v", err)
	}
	tc.check(t, reply)
	if !tc.silent {
		h.check(t, m, tc.text)
		if got := h.reasoning.String(); m.stream && tc.reasoning != "" && got != tc.reasoning {
			t.Errorf("the deltas' reasoning adds up to %q, want %q", got, tc.reasoning)
		}
		if m.stream && len(tc.text) > 100 && h.deltas < 10 {
			t.Errorf("a long text came in %d deltas, want it piece by piece", h.deltas)
		}
	}

	answer(t, tr, reply, "a result")
	add(t, tr, model.Message{Role: model.User, Text: "go on"})
	if _, err := c.Exchange(t.Context(), turn(tr, 2)); err != nil {
		t.Fatalf("Exchange of the reply sent back = %v", err)
	}
	asked := srv.Requests()
	if sent := asked[len(asked)-1].Body; !bytes.Contains(sent, inner(reply.Message.Raw)) {
		t.Errorf("sent back %s, want %s in it", sent, reply.Message.Raw)
	}
}

func (tc replyCase) check(t *testing.T, reply model.Reply) {
	t.Helper()
	m := reply.Message
	if m.Role != model.Assistant || m.Text != tc.text || reply.Finish != tc.finish || reply.Why != tc.why {
		t.Errorf("Exchange = %s %q, finish %s %q, want assistant %q, finish %s %q", m.Role, m.Text, reply.Finish, reply.Why, tc.text, tc.finish, tc.why)
	}
	if len(m.Calls) != len(tc.calls) {
		t.Fatalf("Exchange = %d calls, want %d", len(m.Calls), len(tc.calls))
	}
	var ids []string
	for i, want := range tc.calls {
		got := m.Calls[i]
		if got.ID == "" || slices.Contains(ids, got.ID) {
			t.Errorf("call %d has id %q, want one of its own", i, got.ID)
		}
		ids = append(ids, got.ID)
		if want.ID == "" {
			want.ID = got.ID
		}
		if got != want {
			t.Errorf("call %d = %v, want %v", i, got, want)
		}
	}
	if tc.raw != "" && string(m.Raw) != tc.raw {
		t.Errorf("raw message = %s, want %s", m.Raw, tc.raw)
	}
	for _, part := range tc.keeps {
		if !bytes.Contains(m.Raw, []byte(part)) {
			t.Errorf("raw message = %s, want %s in it", m.Raw, part)
		}
	}
}

// inner is a raw message as it stands in a request: a list of blocks may be joined with
// others.
func inner(raw []byte) []byte {
	if bytes.HasPrefix(raw, []byte("[")) {
		return bytes.TrimSpace(raw[1 : len(raw)-1])
	}
	return raw
}
