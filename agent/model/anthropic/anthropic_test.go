package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o anthropic.Options) *anthropic.Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	c, err := anthropic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve starts a server that answers every request with a body, and returns its URL and the
// last request.
func serve(t *testing.T, answer string) (url string, last func() (*http.Request, string)) {
	t.Helper()
	var req *http.Request
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		req, body = r, string(b)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() (*http.Request, string) { return req, body }
}

const answer = `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":2}}`

// transcript encodes messages the way an agent does.
func transcript(t *testing.T, c *anthropic.Client, messages ...model.Message) *model.Transcript {
	t.Helper()
	tr := model.NewTranscript(c)
	for _, m := range messages {
		if err := tr.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

var (
	system  = model.Message{Role: model.System, Text: "be <brief>"}
	hello   = model.Message{Role: model.User, Text: "hello"}
	thought = json.RawMessage(`[ {"type":"thinking","thinking":"hm","signature":"s\u003d="}, {"type":"tool_use","id":"a","name":"f","input":{"b": 1.0}},{"type":"tool_use","id":"b","name":"g","input":{}} ]`)
	calls   = model.Message{Role: model.Assistant, Raw: thought}
	results = []model.Message{
		{Role: model.ToolRole, CallID: "a", Text: "fine"},
		{Role: model.ToolRole, CallID: "b", Text: "no such file", IsError: true},
	}
)

func TestRequestOnTheWire(t *testing.T) {
	const mark = `,"cache_control":{"type":"ephemeral"}`
	for _, tc := range []struct {
		name     string
		opts     anthropic.Options
		messages []model.Message
		req      model.Request
		want     string
	}{
		{
			"least",
			anthropic.Options{},
			[]model.Message{hello},
			model.Request{},
			`{"model":"m","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"hello"` + mark + `}]}]}`,
		},
		{
			"results of a turn and what the user says next are one message",
			anthropic.Options{Stream: true},
			[]model.Message{system, hello, calls, results[0], results[1], {Role: model.User, Text: "go on"}},
			model.Request{MaxTokens: 100, Tools: json.RawMessage(`[{"name":"f"}]`)},
			`{"model":"m","stream":true,"max_tokens":100,"tools":[{"name":"f"}],"system":[{"type":"text","text":"be <brief>"` + mark + `}],"messages":[` +
				`{"role":"user","content":[{"type":"text","text":"hello"}]},` +
				`{"role":"assistant","content":` + string(thought) + `},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"fine"},` +
				`{"type":"tool_result","tool_use_id":"b","content":"no such file","is_error":true},{"type":"text","text":"go on"` + mark + `}]}]}`,
		},
		{
			"messages without text are left out",
			anthropic.Options{},
			[]model.Message{{Role: model.System, Text: ""}, hello, {Role: model.Assistant, Raw: json.RawMessage("[]")}, {Role: model.User, Text: " \n"}, {Role: model.User, Text: "you said nothing"}},
			model.Request{},
			`{"model":"m","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":"you said nothing"` + mark + `}]}]}`,
		},
		{
			"a schema, and no calls",
			anthropic.Options{Params: model.Params{Reasoning: "low"}, Model: "claude-opus-5-5"},
			[]model.Message{hello},
			model.Request{Schema: json.RawMessage(`{"type":"object"}`), NoCalls: true, Tools: json.RawMessage(`[1]`)},
			`{"model":"claude-opus-5-5","thinking":{"type":"adaptive"},"max_tokens":8192,"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},` +
				`"tool_choice":{"type":"none"},"tools":[1],"messages":[{"role":"user","content":[{"type":"text","text":"hello"` + mark + `}]}]}`,
		},
		{
			"parameters",
			anthropic.Options{Params: model.Params{Temperature: new(0.5), Extra: map[string]json.RawMessage{"top_k": json.RawMessage("3"), "service_tier": json.RawMessage(`"auto"`)}}},
			[]model.Message{hello},
			model.Request{},
			`{"model":"m","temperature":0.5,"service_tier":"auto","top_k":3,"max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"hello"` + mark + `}]}]}`,
		},
		{
			"a reply that is to be continued gets no mark",
			anthropic.Options{},
			[]model.Message{hello, {Role: model.Assistant, Text: "{"}},
			model.Request{},
			`{"model":"m","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]},{"role":"assistant","content":[{"type":"text","text":"{"}]}]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, last := serve(t, answer)
			tc.opts.BaseURL, tc.opts.Key = url+"/v1/", "sk-1"
			c := client(t, tc.opts)
			tc.req.Messages = transcript(t, c, tc.messages...).Messages()
			reply, err := c.Exchange(t.Context(), tc.req)
			if err != nil || reply.Message.Text != "hi" { // a whole reply, also where a stream was asked for
				t.Fatalf("Exchange = %q, %v", reply.Message.Text, err)
			}
			r, body := last()
			if body != tc.want {
				t.Errorf("body = %s, want %s", body, tc.want)
			}
			if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "sk-1" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.ContentLength != int64(len(body)) {
				t.Errorf("%s with %v", r.URL.Path, r.Header)
			}
			for i, m := range tc.req.Messages {
				if again, err := c.Encode(tc.messages[i]); tc.messages[i].Raw == nil && (err != nil || string(again) != string(m.Raw)) {
					t.Errorf("message %d is %s after the request, want %s", i, m.Raw, again)
				}
			}
		})
	}
}

func TestMessagesThatCannotBeSent(t *testing.T) {
	c := client(t, anthropic.Options{BaseURL: "http://127.0.0.1:1"})
	raw := json.RawMessage(`[{"type":"text","text":"x"}]`)
	for name, messages := range map[string][]model.Message{
		"none":                     nil,
		"only the system's":        {{Role: model.System, Raw: raw}},
		"not encoded":              {{Role: model.User, Text: "x"}},
		"of another dialect":       {{Role: model.User, Raw: json.RawMessage(`{"role":"user"}`)}},
		"the system in the middle": {{Role: model.User, Raw: raw}, {Role: model.System, Raw: raw}},
	} {
		_, err := c.Exchange(t.Context(), model.Request{Messages: messages})
		var failed *model.Error
		if err == nil || errors.As(err, &failed) {
			t.Errorf("%s: Exchange = %v, want an error of the harness", name, err)
		}
	}
}

func TestThinking(t *testing.T) {
	for _, tc := range []struct {
		model, reasoning string
		limit            int
		want             string // the fields, empty for a refusal
	}{
		{"claude-sonnet-4-5-20250929", "low", 8192, `,"thinking":{"type":"enabled","budget_tokens":2048},"max_tokens":10240,`},
		{"claude-3-7-sonnet-20250219", "medium", 8192, `,"thinking":{"type":"enabled","budget_tokens":8192},"max_tokens":16384,`},
		{"claude-sonnet-4-20250514", "high", 8192, `,"thinking":{"type":"enabled","budget_tokens":24576},"max_tokens":32768,`},
		{"claude-sonnet-4-20250514", "high", 16384, `,"thinking":{"type":"enabled","budget_tokens":24576},"max_tokens":40960,`},
		{"claude-sonnet-4-20250514", "high", 32768, `,"thinking":{"type":"enabled","budget_tokens":24576},"max_tokens":57344,`},
		{"other-model-7", "high", 30000, `,"thinking":{"type":"enabled","budget_tokens":24576},"max_tokens":54576,`},
		{"other-model-7", "high", 0, `,"thinking":{"type":"enabled","budget_tokens":24576},"max_tokens":32768,`},
		{"claude-opus-4-6", "medium", 8192, `,"thinking":{"type":"adaptive"},"max_tokens":8192,"output_config":{"effort":"medium"},`},
		{"claude-sonnet-5", "high", 8192, `,"thinking":{"type":"adaptive"},"max_tokens":8192,"output_config":{"effort":"high"},`},
		{"claude-sonnet-5", "4000", 8192, `,"thinking":{"type":"enabled","budget_tokens":4000},"max_tokens":12192,`},
		{"claude-sonnet-5", "off", 8192, `,"thinking":{"type":"disabled"},"max_tokens":8192,`},
		{"claude-sonnet-5", "", 8192, `,"max_tokens":8192,`},
		{"claude-sonnet-5", "much", 0, ""},
		{"claude-sonnet-5", "1023", 0, ""},
		{"claude-sonnet-5", "-1", 0, ""},
	} {
		url, last := serve(t, answer)
		c, err := anthropic.New(anthropic.Options{BaseURL: url, Model: tc.model, Params: model.Params{Reasoning: tc.reasoning}})
		if err != nil {
			if tc.want != "" {
				t.Errorf("New with %s, reasoning %q = %v", tc.model, tc.reasoning, err)
			}
			continue
		}
		if _, err := c.Exchange(t.Context(), model.Request{Messages: transcript(t, c, hello).Messages(), MaxTokens: tc.limit}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, body := last(); tc.want == "" || !strings.HasPrefix(body, fmt.Sprintf(`{"model":%q%s`, tc.model, tc.want)) {
			t.Errorf("%s, reasoning %q: body = %s, want …%s…", tc.model, tc.reasoning, body, tc.want)
		}
	}
}

func TestNewRefusesWhatTheAPIHasNot(t *testing.T) {
	for name, p := range map[string]model.Params{
		"seed":            {Seed: new(int64)},
		"a field of ours": {Extra: map[string]json.RawMessage{"max_tokens": json.RawMessage("1")}},
	} {
		if _, err := anthropic.New(anthropic.Options{BaseURL: "http://127.0.0.1:1", Model: "m", Params: p}); err == nil {
			t.Errorf("%s: New = nil, want an error", name)
		}
	}
}

func TestTranslatedMessages(t *testing.T) {
	c := client(t, anthropic.Options{BaseURL: "http://127.0.0.1:1"})
	for _, tc := range []struct {
		m    model.Message
		want string
	}{
		{
			model.Message{Role: model.Assistant, Text: "I <look>", Calls: []model.ToolCall{{ID: "functions.bash:0", Name: "bash", Args: `{"b": 1}`}, {ID: "x", Name: "f", Args: `{"b`}}},
			`[{"type":"text","text":"I <look>"},{"type":"tool_use","id":"functions_bash_0","name":"bash","input":{"b":1}},{"type":"tool_use","id":"x","name":"f","input":{"arguments":"{\"b"}}]`,
		},
		{model.Message{Role: model.ToolRole, CallID: "functions.bash:0"}, `[{"type":"tool_result","tool_use_id":"functions_bash_0"}]`},
	} {
		if got, err := c.Encode(tc.m); err != nil || string(got) != tc.want {
			t.Errorf("Encode(%v) = %s, %v, want %s", tc.m, got, err, tc.want)
		}
	}
	for _, m := range []model.Message{{Role: model.ToolRole, Text: "no id"}, {Role: "narrator", Text: "x"}} {
		if got, err := c.Encode(m); err == nil {
			t.Errorf("Encode(%v) = %s, want an error", m, got)
		}
	}
	got, err := c.EncodeTools([]model.Tool{{Name: "f", Description: "<a>", Schema: json.RawMessage(`{}`)}, {Name: "g", Schema: json.RawMessage(` {} `)}})
	const want = `[{"name":"f","description":"<a>","input_schema":{}},{"name":"g","description":"","input_schema":{},"cache_control":{"type":"ephemeral"}}]`
	if err != nil || string(got) != want {
		t.Errorf("EncodeTools = %s, %v, want %s", got, err, want)
	}
}

func TestReplies(t *testing.T) {
	n := model.Tokens
	for _, tc := range []struct {
		name, content, stop, usage string
		raw                        string // "" is the content
		want                       model.Reply
	}{
		{
			name: "thinking and calls", content: string(thought), stop: "tool_use",
			usage: `{"input_tokens":12,"cache_read_input_tokens":640,"cache_creation_input_tokens":30,"output_tokens":9}`,
			want: model.Reply{
				Message: model.Message{Calls: []model.ToolCall{{ID: "a", Name: "f", Args: `{"b": 1.0}`}, {ID: "b", Name: "g", Args: `{}`}}},
				Finish:  model.FinishToolCalls, Usage: model.Usage{Input: n(12), CacheRead: n(640), CacheWrite: n(30), Output: n(9)},
			},
		},
		{
			name: "blank texts and missing ids", stop: "tool_use", usage: `{}`,
			content: `[{"type":"text","text":"\n\n"},{"type":"x","y":[1, 2]},{"type":"tool_use","name":"f","input":{}},{"type":"text","text":"a"}, {"type":"text","text":"b"}]`,
			raw:     `[{"type":"x","y":[1, 2]},{"id":"call_1_1","type":"tool_use","name":"f","input":{}},{"type":"text","text":"a"},{"type":"text","text":"b"}]`,
			want:    model.Reply{Message: model.Message{Text: "\n\nab", Calls: []model.ToolCall{{ID: "call_1_1", Name: "f", Args: `{}`}}}, Finish: model.FinishToolCalls},
		},
		{name: "no blocks", content: `[]`, stop: "end_turn", usage: `null`, want: model.Reply{Finish: model.FinishStop}},
		{name: "limit", content: `[]`, stop: "max_tokens", usage: `{"output_tokens":-1}`, want: model.Reply{Finish: model.FinishLength}},
		{name: "window full", content: `[]`, stop: "model_context_window_exceeded", usage: `7`, want: model.Reply{Finish: model.FinishLength}},
		{name: "stop word", content: `[]`, stop: "stop_sequence", usage: `{"input_tokens":0}`, want: model.Reply{Finish: model.FinishStop, Usage: model.Usage{Input: n(0)}}},
		{name: "refusal", content: `[]`, stop: "refusal", usage: `{}`, want: model.Reply{Finish: model.FinishOther, Why: "refusal"}},
		{name: "pause", content: `[]`, stop: "pause_turn", usage: `{}`, want: model.Reply{Finish: model.FinishOther, Why: "pause_turn"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url, _ := serve(t, fmt.Sprintf(`{"type":"message","content":%s,"stop_reason":%q,"usage":%s}`, tc.content, tc.stop, tc.usage))
			c := client(t, anthropic.Options{BaseURL: url})
			got, err := c.Exchange(t.Context(), model.Request{Messages: transcript(t, c, hello).Messages()})
			tc.want.Message.Role, tc.want.Message.Raw = model.Assistant, json.RawMessage(tc.raw)
			if tc.raw == "" {
				tc.want.Message.Raw = json.RawMessage(tc.content)
			}
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("Exchange = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}
