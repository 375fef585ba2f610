package modeltest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"skein/agent/model"
)

// A replyCase is one rule and what the client makes of its reply. Each case is also sent
// back, with results for its calls: the server accepts it, and got it byte for byte.
type replyCase struct {
	name   string
	rule   string // the answering fields
	text   string
	calls  []model.ToolCall // ids are compared only where they are given
	finish model.Finish
	raw    string // if not empty, the bytes that have to be kept
}

const odd = `{ "content":"caf\u00e9 <b>","role" : "assistant", "x_signature":{"k":[1, 2.50]},"reasoning_content":"hm & so"}`

var replies = []replyCase{
	{name: "text", rule: `say: "a <b> & c"`, text: "a <b> & c", finish: model.FinishStop},
	{name: "empty content", rule: `say: ""`, finish: model.FinishStop},
	{name: "reasoning only", rule: `reasoning: "so much to think", finish: length`, finish: model.FinishLength},
	{name: "length", rule: `say: "and then", finish: length`, text: "and then", finish: model.FinishLength},
	{name: "refusal", rule: `refusal: "I will not"`, text: "I will not", finish: model.FinishOther},
	{name: "filtered", rule: `say: "", finish: content_filter`, finish: model.FinishOther},
	{
		name: "one call", rule: `call: {bash: {timeout: 5, command: "a < b && c"}}`, finish: model.FinishToolCalls,
		calls: []model.ToolCall{{ID: "call_0_1_1", Name: "bash", Args: `{"timeout":5,"command":"a < b && c"}`}},
	},
	{name: "eight calls", rule: eight(), finish: model.FinishToolCalls, calls: eightCalls()},
	{
		name: "text beside a call", rule: `say: "I look.", call: {list_files: {}}`, text: "I look.",
		finish: model.FinishToolCalls, calls: []model.ToolCall{{Name: "list_files", Args: "{}"}},
	},
	{
		name: "arguments that are no JSON", rule: `call_raw: {name: bash, arguments: '{"command": '}`,
		finish: model.FinishToolCalls, calls: []model.ToolCall{{Name: "bash", Args: `{"command": `}},
	},
	{
		name: "unknown fields", rule: body(odd, "stop"), text: "café <b>", finish: model.FinishStop, raw: odd,
	},
	{
		name: "null content", rule: body(`{"role":"assistant","content":null}`, "stop"), finish: model.FinishStop,
	},
	{
		name: "content in parts", finish: model.FinishStop, text: "ab",
		rule: body(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "stop"),
	},
	{
		name: "arguments as an object", finish: model.FinishToolCalls,
		rule:  body(`{"role":"assistant","content":"","tool_calls":[{"id":"q","type":"function","function":{"name":"f","arguments":{"b": 1, "a": 2}}}]}`, "stop"),
		calls: []model.ToolCall{{ID: "q", Name: "f", Args: `{"b": 1, "a": 2}`}},
	},
	{
		name: "ids missing and twice", finish: model.FinishToolCalls,
		rule: body(`{"role":"assistant","tool_calls": [{"function":{"name":"f","arguments":"1"}},`+
			`{"id":"a","function":{"name":"g","arguments":"2"}}, {"id":"a","function":{"name":"h","arguments":"3"}},{"id":null,"function":{"name":"i"}}],"x": 1.0}`, "tool_calls"),
		raw: `{"role":"assistant","tool_calls": [{"id":"call_1_1","function":{"name":"f","arguments":"1"}},` +
			`{"id":"a","function":{"name":"g","arguments":"2"}}, {"id":"ax","function":{"name":"h","arguments":"3"}},{"id":"call_1_4","function":{"name":"i"}}],"x": 1.0}`,
		calls: []model.ToolCall{
			{ID: "call_1_1", Name: "f", Args: "1"},
			{ID: "a", Name: "g", Args: "2"},
			{ID: "ax", Name: "h", Args: "3"},
			{ID: "call_1_4", Name: "i", Args: "{}"},
		},
	},
}

// body is a rule that answers with a message of the test's own.
func body(message, finish string) string {
	quoted, _ := json.Marshal(fmt.Sprintf(`{"choices":[{"message":%s,"finish_reason":%q}]}`, message, finish)) // a text always encodes
	return "body: " + string(quoted)
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

func (tc replyCase) run(t *testing.T, connect Connect) {
	srv, c := Serve(t, connect, "- {when: {turn: 1}, "+tc.rule+"}\n- say: thanks\n")
	reply, tr, err := ask(t.Context(), t, c, "hello")
	if err != nil {
		t.Fatalf("Exchange = %v", err)
	}
	m := reply.Message
	if m.Role != model.Assistant || m.Text != tc.text || reply.Finish != tc.finish {
		t.Errorf("Exchange = %s %q, finish %s, want assistant %q, finish %s", m.Role, m.Text, reply.Finish, tc.text, tc.finish)
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

	answer(t, tr, reply, "a result")
	add(t, tr, model.Message{Role: model.User, Text: "go on"})
	if _, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: 2}}); err != nil {
		t.Fatalf("Exchange of the reply sent back = %v", err)
	}
	asked := srv.Requests()
	if sent := messages(t, asked[len(asked)-1].Body); string(sent[1]) != string(m.Raw) {
		t.Errorf("sent back %s, want %s", sent[1], m.Raw)
	}
}

// messages takes the raw messages out of a request's body.
func messages(t fataler, body []byte) []json.RawMessage {
	t.Helper()
	var in struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatalf("the body %s is no JSON: %v", body, err)
	}
	return in.Messages
}
