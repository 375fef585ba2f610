package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skein/agent/model"
	"skein/agent/model/openai"
)

// chunks makes a stream of deltas, the last of them with a finish reason, then whatever else.
func chunks(finish string, deltas []string, more ...string) string {
	var b strings.Builder
	for i, d := range deltas {
		reason := "null"
		if i == len(deltas)-1 && finish != "" {
			reason = `"` + finish + `"`
		}
		b.WriteString(": keep-alive\n\ndata: {\"choices\":[{\"index\":0,\"delta\":" + d + ",\"finish_reason\":" + reason + "}],\"usage\":null}\n\n")
	}
	for _, m := range more {
		b.WriteString("data: " + m + "\n\n")
	}
	return b.String()
}

func streamed(t *testing.T, stream string, o openai.Options) (model.Reply, string, string, error) {
	t.Helper()
	o.BaseURL = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	})
	o.Stream = true
	var text, reasoning string
	reply, err := client(t, o).Exchange(t.Context(), model.Request{
		Messages: hello, Stream: func(d model.Delta) { text, reasoning = text+d.Text, reasoning+d.Reasoning },
	})
	return reply, text, reasoning, err
}

func TestStreamedMessages(t *testing.T) {
	for _, tc := range []struct {
		name   string
		deltas []string
		raw    string
		text   string
		calls  []model.ToolCall
	}{
		{
			"text with thoughts and unknown fields",
			[]string{
				`{"role":"assistant","content":null,"reasoning_content":"so "}`, `{"reasoning_content":"much <"}`, `{"content":""}`, `{"content":"caf\u00e9 "}`,
				`{"role":"assistant","content":"<b>","x_sig":{"k":"1","n":2.50},"reasoning_content":null}`, `{"x_sig":{"k":"2"}}`,
			},
			`{"role":"assistant","content":"caf\u00e9 <b>","reasoning_content":"so much <","x_sig":{"k":"12","n":2.50}}`, "café <b>", nil,
		},
		{
			"calls by index, their arguments in pieces",
			[]string{
				`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\": "}}]}`,
				`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}`,
				`{"tool_calls":[]}`, `{"tool_calls":null}`,
			},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"p\": 1}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
			"",
			[]model.ToolCall{{ID: "a", Name: "f", Args: `{"p": 1}`}, {ID: "b", Name: "g", Args: "{}"}},
		},
		{
			"a server that repeats names and ids",
			[]string{`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"}"}}]}`},
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"content":""}`,
			"",
			[]model.ToolCall{{ID: "a", Name: "f", Args: "{}"}},
		},
		{
			"a server that gives all calls the same index, and no types",
			[]string{`{"content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"},"type":"function"},{"id":"b","function":{"name":"f","arguments":"{}"},"type":"function"}]}`,
			"",
			[]model.ToolCall{{ID: "a", Name: "f", Args: "{}"}, {ID: "b", Name: "f", Args: "{}"}},
		},
		{
			"a server without indexes, arguments as an object",
			[]string{`{"content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"b": 1}}}]}`, `{"tool_calls":[{"id":"b","type":"function","function":{"name":"g"}}]}`, `{"tool_calls":[{"function":{"arguments":"{}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"b":1}}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
			"",
			[]model.ToolCall{{ID: "a", Name: "f", Args: `{"b":1}`}, {ID: "b", Name: "g", Args: "{}"}},
		},
		{
			"an id that is missing",
			[]string{`{"content":"","tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{}"}}]}`},
			`{"role":"assistant","content":"","tool_calls":[{"id":"call_1_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			"",
			[]model.ToolCall{{ID: "call_1_1", Name: "f", Args: "{}"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reply, text, _, err := streamed(t, chunks("stop", tc.deltas, "[DONE]"), openai.Options{})
			if err != nil || string(reply.Message.Raw) != tc.raw || reply.Message.Text != tc.text || !reflect.DeepEqual(reply.Message.Calls, tc.calls) {
				t.Errorf("Exchange = %+v\n%s, %v, want %q %v\n%s", reply, reply.Message.Raw, err, tc.text, tc.calls, tc.raw)
			}
			if text != tc.text {
				t.Errorf("deltas = %q, want %q", text, tc.text)
			}
		})
	}
}

// TestStreamEnds shows what a whole stream is, and that usage may come last.
func TestArgumentsCutByTheLimit(t *testing.T) {
	const begun = `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f"}}]}`
	for _, tc := range []struct {
		reason string
		deltas []string
		want   []string
	}{
		{"length", []string{begun}, []string{""}},
		{"length", []string{begun, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}`}, []string{`{"a`}},
		{"length", []string{begun, `{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}}]}`}, []string{"{}", ""}},
		{"tool_calls", []string{begun}, []string{"{}"}},
	} {
		got, _, _, err := streamed(t, chunks(tc.reason, tc.deltas), openai.Options{})
		if err != nil {
			t.Errorf("%v: Exchange = %v", tc.deltas, err)
		}
		var args []string
		for _, call := range got.Message.Calls {
			args = append(args, call.Args)
		}
		if !slices.Equal(args, tc.want) {
			t.Errorf("%v, finish %s: arguments = %q, want %q", tc.deltas, tc.reason, args, tc.want)
		}
	}
}

func TestStreamEnds(t *testing.T) {
	hi := []string{`{"content":"h","reasoning":"why"}`, `{"content":"i"}`}
	const usage = `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}`
	for _, tc := range []struct {
		name, stream string
		finish       model.Finish
		usage        model.Usage
	}{
		{"usage of its own", chunks("length", hi, usage, "[DONE]", `{"never":"read"`), model.FinishLength, model.Usage{Input: model.Tokens(7), Output: model.Tokens(2)}},
		{"no end mark", chunks("stop", hi, usage), model.FinishStop, model.Usage{Input: model.Tokens(7), Output: model.Tokens(2)}},
		{"no finish reason", chunks("", hi, "[DONE]"), model.FinishStop, model.Usage{}},
		{"other choices", chunks("stop", hi, `{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}`), model.FinishStop, model.Usage{}},
		{"CRLF", strings.ReplaceAll(chunks("stop", hi, "[DONE]"), "\n", "\r\n"), model.FinishStop, model.Usage{}},
	} {
		reply, text, reasoning, err := streamed(t, tc.stream, openai.Options{})
		if err != nil || reply.Message.Text != "hi" || reply.Finish != tc.finish || reply.Usage != tc.usage {
			t.Errorf("%s: Exchange = %+v, %v, want hi, %s, %v", tc.name, reply, err, tc.finish, tc.usage)
		}
		if text != "hi" || reasoning != "why" {
			t.Errorf("%s: deltas = %q, %q", tc.name, text, reasoning)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	hi := []string{`{"content":"hi"}`}
	for _, tc := range []struct {
		name, stream, want string
		again, long        bool
	}{
		{"no end", chunks("", hi), "ask openai: the stream ended before the reply was whole", true, false},
		{"nothing", "", "ask openai: the stream ended before the reply was whole", true, false},
		{"no message", "data: [DONE]\n\n", "ask openai: status 200: the reply holds no message", true, false},
		{"garbage", "data: {\"choices\":7}\n\n", `ask openai: status 200: the stream holds what is no piece of a chat completion: {"choices":7}`, false, false},
		{"an error", chunks("", hi, `{"error":{"message":"lost the model"}}`), "ask openai: status 200: lost the model", true, false},
		{"an error with its status", chunks("", hi, `{"error":{"code":"429","message":"slow down"}}`), "ask openai: status 429: slow down", true, false},
		{"a wrong request", chunks("", hi, `{"error":{"type":"invalid_request_error","message":"no"}}`), "ask openai: status 200: no", false, false},
		{"too long", `{"error":{"code":"context_length_exceeded","message":"long"}}`, "ask openai: status 200: long", false, true},
	} {
		_, _, _, err := streamed(t, tc.stream, openai.Options{})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Error() != tc.want || failed.Again != tc.again || failed.TooLong != tc.long {
			t.Errorf("%s: Exchange = %v, %+v, want %s, again %t, too long %t", tc.name, err, failed, tc.want, tc.again, tc.long)
		}
	}
}

func TestParameters(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tc := range []struct {
		name string
		opts openai.Options
		want string // "" for a refusal
	}{
		{"all", openai.Options{Stream: true, Params: model.Params{Temperature: new(0.0), Seed: new(int64(3)), Reasoning: "low", Extra: map[string]json.RawMessage{"top_p": raw("0.9"), "n_x": raw(`{"<": 1}`)}}}, `,"stream":true,"stream_options":{"include_usage":true},"temperature":0,"seed":3,"reasoning_effort":"low","n_x":{"<": 1},"top_p":0.9`},
		{"off where there is a word for it", openai.Options{ReasoningOff: "none", Params: model.Params{Reasoning: "off"}}, `,"reasoning_effort":"none"`},
		{"off where there is none", openai.Options{Params: model.Params{Reasoning: "off"}}, ""},
		{"a budget", openai.Options{Params: model.Params{Reasoning: "4000"}}, ""},
		{"a field of ours", openai.Options{Params: model.Params{Extra: map[string]json.RawMessage{"messages": raw("[]")}}}, ""},
		{"the limit under its other name", openai.Options{LimitField: "max_completion_tokens", Params: model.Params{Extra: map[string]json.RawMessage{"max_tokens": raw("3")}}}, `,"max_tokens":3`},
	} {
		var body string
		tc.opts.Model = "m"
		tc.opts.BaseURL = serve(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			body = string(b)
			_, _ = io.WriteString(w, completion(`{"content":"hi"}`, `"stop"`, `null`))
		})
		c, err := openai.New(tc.opts)
		if err != nil {
			if tc.want != "" {
				t.Errorf("%s: New = %v", tc.name, err)
			}
			continue
		}
		if _, err := c.Exchange(t.Context(), model.Request{Messages: hello, MaxTokens: 9, Schema: raw(`{"a":1}`), NoCalls: true, Tools: raw(`[1]`)}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		limit := "max_tokens"
		if tc.opts.LimitField != "" {
			limit = tc.opts.LimitField
		}
		want := `{"model":"m"` + tc.want + `,"messages":[{"role":"user","content":"hello"}],"` + limit +
			`":9,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"a":1}}}}`
		if tc.want == "" || body != want {
			t.Errorf("%s: body = %s, want %s", tc.name, body, want)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	stream := chunks("stop", []string{strings.Repeat(`{"content":"word "}`, 1)})
	var all strings.Builder
	for range 5000 {
		all.WriteString(strings.Replace(stream, `"stop"`, "null", 1))
	}
	all.WriteString(stream)
	c, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:1/v1", Model: "m", Stream: true, HTTP: &http.Client{Transport: canned(all.String())}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(all.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Exchange(b.Context(), model.Request{Messages: hello}); err != nil {
			b.Fatal(err)
		}
	}
}
