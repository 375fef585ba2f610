package ollama_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/ollama"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o ollama.Options) *ollama.Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	c, err := ollama.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve starts a server that answers every request with a body, and returns its URL and the
// last request's body.
func serve(t *testing.T, status int, answer string) (url string, last func() string) {
	t.Helper()
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
		if r.URL.Path != "/api/chat" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked %s with %v", r.URL.Path, r.Header)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() string { return body }
}

const answer = `{"message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"}`

func say(text string) model.Message {
	return model.Message{Role: model.User, Text: text, Raw: json.RawMessage(fmt.Sprintf(`{"role":"user","content":%q}`, text))}
}

func TestRequestOnTheWire(t *testing.T) {
	const hello = `[{"role":"user","content":"hello"}]`
	for _, tc := range []struct {
		name string
		opts ollama.Options
		req  model.Request
		want string
	}{
		{
			"least",
			ollama.Options{},
			model.Request{},
			`{"model":"m","stream":false,"truncate":false,"shift":false,"messages":` + hello + `,"options":{"num_ctx":10240}}`,
		},
		{
			"everything",
			ollama.Options{Model: "qwen3:<8b>", Params: model.Params{Temperature: new(0.5), Seed: new(int64(7)), Reasoning: "high", Extra: map[string]json.RawMessage{
				"keep_alive": json.RawMessage(`"1h"`), "top_p": json.RawMessage("0.9"), "min_p": json.RawMessage("0"),
			}}},
			model.Request{MaxTokens: 100, Tools: json.RawMessage(`[1]`), Schema: json.RawMessage(`{"type":"object"}`)},
			`{"model":"qwen3:<8b>","stream":false,"truncate":false,"shift":false,"think":true,"keep_alive":"1h","messages":` + hello +
				`,"tools":[1],"format":{"type":"object"},"options":{"num_ctx":2048,"num_predict":100,"temperature":0.5,"seed":7,"min_p":0,"top_p":0.9}}`,
		},
		{
			"a fixed window, no calls",
			ollama.Options{Params: model.Params{Reasoning: "off", Extra: map[string]json.RawMessage{"num_ctx": json.RawMessage("4096")}}},
			model.Request{Tools: json.RawMessage(`[1]`), NoCalls: true},
			`{"model":"m","stream":false,"truncate":false,"shift":false,"think":false,"messages":` + hello + `,"options":{"num_ctx":4096}}`,
		},
		{
			"a model with levels",
			ollama.Options{Model: "gpt-oss:20b", Params: model.Params{Reasoning: "low"}},
			model.Request{MaxTokens: 1},
			`{"model":"gpt-oss:20b","stream":false,"truncate":false,"shift":false,"think":"low","messages":` + hello + `,"options":{"num_ctx":2048,"num_predict":1}}`,
		},
	} {
		url, last := serve(t, 200, answer)
		tc.opts.BaseURL = url + "/v1"
		tc.req.Messages = []model.Message{say("hello")}
		reply, err := client(t, tc.opts).Exchange(t.Context(), tc.req)
		if err != nil || reply.Message.Text != "hi" || last() != tc.want {
			t.Errorf("%s: Exchange = %q, %v with body\n%s, want\n%s", tc.name, reply.Message.Text, err, last(), tc.want)
		}
	}
}

func TestWindowGrowsAndNeverShrinks(t *testing.T) {
	url, last := serve(t, 200, answer)
	c := client(t, ollama.Options{BaseURL: url})
	var windows []int64
	for _, size := range []int{100, 3000, 30_000, 36_000, 100, 60_000, 60_000} {
		if _, err := c.Exchange(t.Context(), model.Request{Messages: []model.Message{say(strings.Repeat("x", size))}, MaxTokens: 2000}); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Options struct {
				Window int64 `json:"num_ctx"`
			} `json:"options"`
		}
		if err := json.Unmarshal([]byte(last()), &sent); err != nil {
			t.Fatal(err)
		}
		windows = append(windows, sent.Options.Window)
		if got := sent.Options.Window; got < int64(size/3+2000) || got%2048 != 0 {
			t.Errorf("window for %d bytes = %d, want room for them and 2000 tokens, in steps of 2048", size, got)
		}
	}
	// The model is loaded four times: 36,000 bytes find room in what 30,000 asked for only
	// because it was rounded up, 60,000 need more.
	if want := []int64{2048, 4096, 12288, 16384, 16384, 22528, 22528}; !slices.Equal(windows, want) {
		t.Errorf("windows = %v, want %v", windows, want)
	}
}

func TestWindowFollowsTheDensestPrompt(t *testing.T) {
	var window, counted int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			Options struct {
				Window int64 `json:"num_ctx"`
			} `json:"options"`
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		window = sent.Options.Window
		_, _ = fmt.Fprintf(w, `{"message":{"role":"assistant","content":"hi"},"done":true,"prompt_eval_count":%d}`, counted)
	}))
	defer srv.Close()
	for _, tc := range []struct {
		name           string
		first, counted int64 // bytes of the first prompt, and its tokens
		want           int64 // window of a second one of 40,000 bytes
	}{
		{"as supposed", 30_000, 9000, 16384},
		{"thinner", 30_000, 100, 16384},
		{"denser", 30_000, 18_000, 26624},
		{"more than can be", 30_000, 90_000, 43008},
		{"too short to tell", 100, 90, 16384},
		{"not counted", 30_000, 0, 16384},
	} {
		c := client(t, ollama.Options{BaseURL: srv.URL})
		// The last is thin again: what was learnt stays.
		for _, step := range []struct{ size, counted int64 }{{tc.first, tc.counted}, {30_000, 1000}, {39_966, 1000}} {
			counted = step.counted
			if _, err := c.Exchange(t.Context(), model.Request{Messages: []model.Message{say(strings.Repeat("x", int(step.size)))}, MaxTokens: 2000}); err != nil {
				t.Fatal(err)
			}
		}
		if window != tc.want {
			t.Errorf("%s: window = %d, want %d", tc.name, window, tc.want)
		}
	}
}

func TestWarningWhenTheFrontWasCut(t *testing.T) {
	for _, tc := range []struct {
		bytes, counted int
		warns          bool
	}{
		{80_000, 4096, true},
		{80_000, 20_000, false},
		{80_000, 0, false}, // older servers count nothing where the prompt was cached
		{20, 1, true},
	} {
		url, _ := serve(t, 200, fmt.Sprintf(`{"message":{"role":"assistant","content":"hi"},"done":true,"prompt_eval_count":%d}`, tc.counted))
		var warnings []string
		c := client(t, ollama.Options{BaseURL: url, Warning: func(text string) { warnings = append(warnings, text) }})
		for range 2 {
			if _, err := c.Exchange(t.Context(), model.Request{Messages: []model.Message{say(strings.Repeat("x", tc.bytes))}}); err != nil {
				t.Fatal(err)
			}
		}
		if (len(warnings) == 1) != tc.warns || len(warnings) > 1 {
			t.Errorf("%d bytes, %d tokens counted: warnings %q, want one: %t", tc.bytes, tc.counted, warnings, tc.warns)
		}
	}
}

func TestNewRefusesWhatTheAPIHasNot(t *testing.T) {
	for name, p := range map[string]model.Params{
		"a budget of reasoning":  {Reasoning: "4000"},
		"a window of no size":    {Extra: map[string]json.RawMessage{"num_ctx": json.RawMessage("0")}},
		"a window of words":      {Extra: map[string]json.RawMessage{"num_ctx": json.RawMessage(`"big"`)}},
		"the limit, twice":       {Extra: map[string]json.RawMessage{"num_predict": json.RawMessage("1")}},
		"the temperature, twice": {Temperature: new(0.5), Extra: map[string]json.RawMessage{"temperature": json.RawMessage("1")}},
	} {
		if _, err := ollama.New(ollama.Options{BaseURL: "http://127.0.0.1:1", Model: "m", Params: p}); err == nil {
			t.Errorf("%s: New = nil, want an error", name)
		}
	}
}

func TestEncode(t *testing.T) {
	c := client(t, ollama.Options{BaseURL: "http://127.0.0.1:1"})
	for _, tc := range []struct {
		m    model.Message
		want string
	}{
		{model.Message{Role: model.System, Text: "a <b>"}, `{"role":"system","content":"a <b>"}`},
		{model.Message{Role: model.ToolRole, CallID: "x", Name: "grep", Text: "hit"}, `{"role":"tool","tool_name":"grep","content":"hit"}`},
		{model.Message{Role: model.ToolRole, CallID: "x", Text: "no such tool"}, `{"role":"tool","tool_name":"unnamed","content":"no such tool"}`},
		{
			model.Message{Role: model.Assistant, Calls: []model.ToolCall{{ID: "x", Name: "f", Args: `{"b": 1}`}, {ID: "y", Name: "g", Args: `[`}}},
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"b":1}}},{"function":{"name":"g","arguments":{"arguments":"["}}}]}`,
		},
	} {
		if got, err := c.Encode(tc.m); err != nil || string(got) != tc.want {
			t.Errorf("Encode(%v) = %s, %v, want %s", tc.m, got, err, tc.want)
		}
	}
	if got, err := c.Encode(model.Message{Role: "narrator"}); err == nil {
		t.Errorf("Encode of a narrator's message = %s, want an error", got)
	}
}

func TestReplies(t *testing.T) {
	n := model.Tokens
	const calls = `{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"b": 1.0}}},{"id":"call_9","function":{"index":1,"name":"f","arguments":{}}},{"function":{"name":"g","arguments":"{}"}}]}`
	url, _ := serve(t, 200, `{"message":`+calls+`,"done":true,"done_reason":"stop","prompt_eval_count":100,"prompt_eval_cached_count":64,"eval_count":5}`)
	got, err := client(t, ollama.Options{BaseURL: url}).Exchange(t.Context(), model.Request{Messages: []model.Message{say("hello")}})
	want := model.Reply{
		Message: model.Message{
			Role: model.Assistant, Raw: json.RawMessage(calls),
			Calls: []model.ToolCall{{ID: "call_1_1", Name: "f", Args: `{"b": 1.0}`}, {ID: "call_9", Name: "f", Args: "{}"}, {ID: "call_1_3", Name: "g", Args: "{}"}},
		},
		Finish: model.FinishToolCalls, Usage: model.Usage{Input: n(36), CacheRead: n(64), Output: n(5)},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Exchange = %+v, %v, want %+v", got, err, want)
	}
}

func TestStream(t *testing.T) {
	url, _ := serve(t, 200, strings.Join([]string{
		`{"message":{"role":"assistant","content":"","thinking":"so "},"done":false}`,
		`{"message":{"role":"assistant","content":"","thinking":"much"},"done":false}`,
		"",
		`{"message":{"role":"assistant","content":"<a> \u00e9"},"done":false}` + "\r",
		`{"message":{"role":"assistant","content":"😀","tool_calls":[{"function":{"name":"f","arguments":{"b": 1.0}}}]},"done":false}`,
		`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"g","arguments":{}}}]},"done":false}`,
		`{"message":{"role":"assistant","content":""},"done":true,"done_reason":"length","prompt_eval_count":7,"eval_count":3}`, // no line end
	}, "\n"))
	var text, reasoning string
	got, err := client(t, ollama.Options{BaseURL: url, Stream: true}).Exchange(t.Context(), model.Request{
		Messages: []model.Message{say("hello")},
		Stream:   func(d model.Delta) { text, reasoning = text+d.Text, reasoning+d.Reasoning },
	})
	want := model.Reply{
		Message: model.Message{
			Role: model.Assistant, Text: "<a> é😀",
			Raw:   json.RawMessage(`{"role":"assistant","content":"<a> \u00e9😀","thinking":"so much","tool_calls":[{"function":{"name":"f","arguments":{"b": 1.0}}},{"function":{"name":"g","arguments":{}}}]}`),
			Calls: []model.ToolCall{{ID: "call_1_1", Name: "f", Args: `{"b": 1.0}`}, {ID: "call_1_2", Name: "g", Args: "{}"}},
		},
		Finish: model.FinishLength, Usage: model.Usage{Input: model.Tokens(7), Output: model.Tokens(3)},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Exchange = %+v\n%s, %v, want %+v\n%s", got, got.Message.Raw, err, want, want.Message.Raw)
	}
	if text != "<a> é😀" || reasoning != "so much" {
		t.Errorf("deltas = %q, %q", text, reasoning)
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name        string
		status      int
		answer      string
		stream      bool
		want, hint  string
		again, long bool
	}{
		{"no such model", 404, `{"error":"model 'm' not found"}`, false, "ask ollama: status 404: model 'm' not found", "get the model with: ollama pull m", false, false},
		{"cannot call tools", 400, `{"error":"m does not support tools"}`, false, "ask ollama: status 400: m does not support tools", "", false, false},
		{"too long", 400, `{"error":"the input length exceeds the context length"}`, false, "ask ollama: status 400: the input length exceeds the context length", "the conversation does not fit", false, true},
		{"error in a stream", 200, `{"message":{"content":"so"},"done":false}` + "\n" + `{"error":"runner died"}` + "\n", true, "ask ollama: status 500: runner died", "", true, false},
		{"error in place of a stream", 200, `{"error":"no"}`, true, "ask ollama: status 500: no", "", true, false},
		{"cut at a line's end", 200, `{"message":{"content":"so"},"done":false}` + "\n", true, "ask ollama: the stream ended before the reply was whole", "", true, false},
		{"cut in a line", 200, `{"message":{"content":"so"},"done":false}` + "\n" + `{"message":{"con`, true, "ask ollama: the stream ended before the reply was whole", "", true, false},
		{"nothing in a stream", 200, "", true, "ask ollama: the stream ended before the reply was whole", "", true, false},
		{"nothing", 200, " ", false, "ask ollama: status 200: the reply is empty", "", true, false},
		{"no message", 200, `{"done":true}`, false, "ask ollama: status 200: the reply holds no message", "", true, false},
		{"no message in a stream", 200, `{"done":true}`, true, "ask ollama: status 200: the reply holds no message", "", true, false},
		{"not done", 200, `{"message":{},"done":false}`, false, "ask ollama: status 200: the reply is not whole", "", true, false},
		{"another server", 200, `<html>`, false, "ask ollama: status 200: a web page came in place of a reply: <html>", "check that http://127.0.0.1:", false, false},
	} {
		url, _ := serve(t, tc.status, tc.answer)
		_, err := client(t, ollama.Options{BaseURL: url, Stream: tc.stream}).Exchange(t.Context(), model.Request{Messages: []model.Message{say("hello")}})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Error() != tc.want || !strings.HasPrefix(failed.Hint(), tc.hint) || failed.Again != tc.again || failed.TooLong != tc.long {
			t.Errorf("%s: Exchange = %v, hint %q, %+v, want %s, hint %q…, again %t", tc.name, err, failed.Hint(), failed, tc.want, tc.hint, tc.again)
		}
	}
}

func TestList(t *testing.T) {
	answer := `{"models":[{"name":"qwen3:8b"},{"name":"gemma3:4b"}]}`
	slow := time.Duration(0)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
		}
		if r.URL.Path != "/api/tags" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer srv.Close()
	got, err := ollama.List(t.Context(), srv.URL+"/")
	if want := []string{"qwen3:8b", "gemma3:4b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("List = %v, %v, want %v", got, err, want)
	}
	answer = `{"models":[]}`
	if got, err := ollama.List(t.Context(), srv.URL); err != nil || len(got) != 0 {
		t.Errorf("List of a server without models = %v, %v", got, err)
	}
	answer = `{"hello":"I am something else"}`
	if got, err := ollama.List(t.Context(), srv.URL); err == nil {
		t.Errorf("List of another server = %v, want an error", got)
	}
	for _, url := range []string{srv.URL + "/elsewhere", "", "://", "http://127.0.0.1:1"} {
		if got, err := ollama.List(t.Context(), url); err == nil {
			t.Errorf("List(%q) = %v, want an error", url, got)
		}
	}
	slow, answer = time.Minute, `{"models":[]}`
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := ollama.List(soon, srv.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("List of a server that does not answer = %v, %v, want the caller's deadline", got, err)
	}
}
