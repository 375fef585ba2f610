package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/openai"
	"skein/agent/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that hands each request to answer.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func client(t *testing.T, o openai.Options) *openai.Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var hello = []model.Message{{Role: model.User, Text: "hello", Raw: json.RawMessage(`{"role":"user","content":"hello"}`)}}

func completion(message, finish, usage string) string {
	return fmt.Sprintf(`{"choices":[{"message":%s,"finish_reason":%s}],"usage":%s}`, message, finish, usage)
}

func TestRequestOnTheWire(t *testing.T) {
	var got, auth, origin string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, auth, origin = string(b), r.Header.Get("Authorization"), r.Header.Get("Skein-Agent")
		if r.ContentLength != int64(len(b)) || r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
			t.Errorf("%s %s with length %d, want POST /v1/chat/completions with length %d", r.Method, r.URL.Path, r.ContentLength, len(b))
		}
		_, _ = io.WriteString(w, completion(`{"content":"hi"}`, `"stop"`, `null`))
	})
	raw := json.RawMessage(`{ "role":"assistant", "content":"\u00e9", "x":1.0 }`)
	req := model.Request{
		Messages:  append(hello[:1:1], model.Message{Role: model.Assistant, Raw: raw}),
		Tools:     json.RawMessage(`[{"type":"function"}]`),
		MaxTokens: 8192,
		Origin:    model.Origin{Agent: "0.2", Turn: 3},
	}
	for _, tc := range []struct {
		name               string
		opts               openai.Options
		req                model.Request
		body, auth, origin string
	}{
		{
			"everything",
			openai.Options{Model: "a<b>", Key: "sk-1", Scripted: true},
			req,
			`{"model":"a<b>","messages":[{"role":"user","content":"hello"},` + string(raw) + `],"tools":[{"type":"function"}],"max_tokens":8192}`,
			"Bearer sk-1", "0.2; turn=3",
		},
		{
			"least",
			openai.Options{},
			model.Request{Messages: hello, Origin: req.Origin},
			`{"model":"m","messages":[{"role":"user","content":"hello"}]}`, "", "",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.BaseURL = url
			if _, err := client(t, tc.opts).Exchange(t.Context(), tc.req); err != nil {
				t.Fatalf("Exchange = %v", err)
			}
			if got != tc.body {
				t.Errorf("body = %s, want %s", got, tc.body)
			}
			if auth != tc.auth || origin != tc.origin {
				t.Errorf("headers = %q, %q, want %q, %q", auth, origin, tc.auth, tc.origin)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	n := model.Tokens
	for _, tc := range []struct {
		name, usage string
		want        model.Usage
	}{
		{"DeepSeek", `{"prompt_tokens":4409,"prompt_cache_hit_tokens":640,"prompt_tokens_details":{"cached_tokens":640},"completion_tokens":186,"completion_tokens_details":{"reasoning_tokens":6}}`, model.Usage{Input: n(3769), CacheRead: n(640), Output: n(186), Reasoning: n(6)}},
		{"OpenAI", `{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":null}`, model.Usage{Input: n(36), CacheRead: n(64), Output: n(2)}},
		{"no cache told", `{"prompt_tokens":100,"completion_tokens":2}`, model.Usage{Input: n(100), Output: n(2)}},
		{"zero is known", `{"prompt_tokens":0,"prompt_cache_hit_tokens":0,"completion_tokens":0}`, model.Usage{Input: n(0), CacheRead: n(0), Output: n(0)}},
		{"null", `null`, model.Usage{}},
		{"of another shape", `{"prompt_tokens":"many","completion_tokens":2}`, model.Usage{}},
		{"negative", `{"prompt_tokens":-1,"completion_tokens":2,"prompt_cache_hit_tokens":3}`, model.Usage{Output: n(2)}},
		{"more cached than sent", `{"prompt_tokens":10,"prompt_cache_hit_tokens":64,"completion_tokens":2}`, model.Usage{Input: n(10), Output: n(2)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, completion(`{"content":"hi"}`, `"stop"`, tc.usage))
			})
			reply, err := client(t, openai.Options{BaseURL: url}).Exchange(t.Context(), model.Request{Messages: hello})
			if err != nil || reply.Usage != tc.want {
				t.Errorf("usage of %s = %+v, %v, want %+v", tc.usage, reply.Usage, err, tc.want)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	call := `{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	for _, tc := range []struct {
		message, word string
		want          model.Finish
		why           string
	}{
		{`{"content":"x"}`, `"stop"`, model.FinishStop, ""},
		{`{"content":"x"}`, `null`, model.FinishStop, ""},
		{call, `"tool_calls"`, model.FinishToolCalls, ""},
		{call, `"stop"`, model.FinishToolCalls, ""},
		{call, `null`, model.FinishToolCalls, ""},
		{call, `"length"`, model.FinishLength, ""},
		{call, `"content_filter"`, model.FinishOther, "content_filter"},
		{`{"content":"x"}`, `"a\u001b[31m\nword"`, model.FinishOther, "a[31m word"},
		{`{"refusal":"no"}`, `"stop"`, model.FinishOther, ""},
		{`{"refusal":"no"}`, `"content_filter"`, model.FinishOther, ""},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, completion(tc.message, tc.word, `null`))
		})
		reply, err := client(t, openai.Options{BaseURL: url}).Exchange(t.Context(), model.Request{Messages: hello})
		if err != nil || reply.Finish != tc.want || reply.Why != tc.why {
			t.Errorf("finish of %s, %s = %s, why %q, %v, want %s, why %q", tc.message, tc.word, reply.Finish, reply.Why, err, tc.want, tc.why)
		}
	}
}

func TestProviderOutOfRoomIsAskedAgain(t *testing.T) {
	const word, usage = "insufficient_system_resource", `{"prompt_tokens":5,"completion_tokens":2}`
	want := model.Usage{Input: model.Tokens(5), Output: model.Tokens(2)}
	for _, stream := range []bool{false, true} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			body := completion(`{"content":"half an"}`, `"`+word+`"`, usage)
			if stream {
				body = chunks(word, []string{`{"content":"half an"}`}, `{"choices":[],"usage":`+usage+`}`, "[DONE]")
			}
			_, _ = io.WriteString(w, body)
		})
		reply, err := client(t, openai.Options{BaseURL: url, Stream: stream}).Exchange(t.Context(), model.Request{Messages: hello})
		failed := (*model.Error)(nil)
		if !errors.As(err, &failed) || !failed.Again || failed.Usage != want || !strings.Contains(failed.Message, word) || reply.Message.Text != "" {
			t.Errorf("stream %t: Exchange = %q, %+v, want an error to be tried again, with its usage", stream, reply.Message.Text, err)
		}
	}
}

func TestIDsOfEarlierRepliesAreNotUsedAgain(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, completion(`{"tool_calls":[{"id":"call_0","function":{"name":"f","arguments":"{}"}}]}`, `"tool_calls"`, `null`))
	})
	c := client(t, openai.Options{BaseURL: url})
	tr := model.NewTranscript(c, hello...)
	seen := map[string]bool{}
	for range 3 {
		reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages()})
		if err != nil {
			t.Fatal(err)
		}
		id := reply.Message.Calls[0].ID
		if seen[id] || !bytes.Contains(reply.Message.Raw, []byte(`"id":"`+id+`"`)) {
			t.Errorf("id %q in %s, want one that was not there before, in both forms", id, reply.Message.Raw)
		}
		seen[id] = true
		for _, m := range []model.Message{reply.Message, {Role: model.ToolRole, CallID: id, Text: "ok"}} {
			if err := tr.Append(m); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAdvice(t *testing.T) {
	const key = "sk-verysecret"
	for _, tc := range []struct {
		status     int
		key, words string
		want, hint string
	}{
		{401, key, `{"error":{"message":"bad key ` + key + `"}}`, "ask deepseek: status 401: bad key [key]", "check that DEEPSEEK_API_KEY holds a valid key for "},
		{401, "", `{"error":{"message":"no key"}}`, "ask deepseek: status 401: no key", "set DEEPSEEK_API_KEY"},
		{403, key, `{"detail":"not you"}`, "ask deepseek: status 403: not you", "check that DEEPSEEK_API_KEY holds"},
		{404, key, `{"error":"no such model"}`, "ask deepseek: status 404: no such model", `check the model name "m" and the base URL http://127.0.0.1:`},
		{307, key, ``, "ask deepseek: status 307: temporary redirect", "the server redirects"},
		{500, key, strings.Repeat("x", 495) + key, "ask deepseek: status 500: " + strings.Repeat("x", 495) + "[key]", ""},
		{500, key, strings.Repeat("x", 498) + key, "ask deepseek: status 500: " + strings.Repeat("x", 498) + "[k…", ""},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/chat/completions" {
				t.Errorf("the conversation was carried on to %s", r.URL)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.words)
		})
		c := client(t, openai.Options{BaseURL: url, Name: "deepseek", Key: tc.key, KeyVar: "DEEPSEEK_API_KEY"})
		_, err := c.Exchange(t.Context(), model.Request{Messages: hello})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Error() != tc.want || !strings.HasPrefix(failed.Hint(), tc.hint) {
			t.Errorf("Exchange = %v, hint %q, want %q, hint %q…", err, failed.Hint(), tc.want, tc.hint)
		}
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts openai.Options
	}{
		{"no URL", openai.Options{Model: "m"}},
		{"no scheme", openai.Options{Model: "m", BaseURL: "localhost:1234/v1"}},
		{"another scheme", openai.Options{Model: "m", BaseURL: "ftp://secret.example/v1"}},
		{"not parsable", openai.Options{Model: "m", BaseURL: "http://secret example/%zz"}},
		{"password", openai.Options{Model: "m", BaseURL: "https://me:secret@example.com/v1"}},
		{"no model", openai.Options{BaseURL: "https://example.com/v1"}},
		{"key with a line break", openai.Options{Model: "m", BaseURL: "https://example.com/v1", Key: "secret\n"}},
	} {
		_, err := openai.New(tc.opts)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: New = %v, want an error without the secret", tc.name, err)
		}
	}
}

func TestSlowServer(t *testing.T) {
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client go
		<-r.Context().Done()
	})
	c := client(t, openai.Options{BaseURL: url, Name: "deepseek", Limits: wire.Limits{Whole: 20 * time.Millisecond}})
	_, err := c.Exchange(t.Context(), model.Request{Messages: hello})
	var failed *model.Error
	if want := "ask deepseek: no whole reply within 20ms"; !errors.As(err, &failed) || err.Error() != want {
		t.Errorf("Exchange = %v, want %s", err, want)
	}
}

func TestReplyTooLarge(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := bytes.Repeat([]byte(" "), 1<<20)
		for range 65 {
			_, _ = w.Write(chunk)
		}
	})
	_, err := client(t, openai.Options{BaseURL: url}).Exchange(t.Context(), model.Request{Messages: hello})
	if want := "larger than 64 MiB"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Exchange = %v, want …%s…", err, want)
	}
}

func TestMessagesThatWereNotEncodedAreRefused(t *testing.T) {
	c := client(t, openai.Options{BaseURL: "http://127.0.0.1:1/v1"})
	for _, messages := range [][]model.Message{nil, {{Role: model.User, Text: "x"}}} {
		_, err := c.Exchange(t.Context(), model.Request{Messages: messages})
		var failed *model.Error
		if err == nil || errors.As(err, &failed) {
			t.Errorf("Exchange of %v = %v, want an error of the harness", messages, err)
		}
	}
}

// canned answers without a network, after it has read the whole body.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(c))), Request: r}, nil
}

// TestCostOfARequest shows that what an exchange allocates does not grow with the history.
func TestCostOfARequest(t *testing.T) {
	reply := canned(completion(`{"content":"hi"}`, `"stop"`, `null`))
	c := client(t, openai.Options{BaseURL: "http://127.0.0.1:1/v1", HTTP: &http.Client{Transport: reply}})
	cost := func(turns int) (allocs, size float64) {
		tr := model.NewTranscript(c)
		for range turns {
			for _, role := range []model.Role{model.User, model.Assistant} {
				if err := tr.Append(model.Message{Role: role, Text: strings.Repeat("some text ", 400)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		req := model.Request{Messages: tr.Messages()}
		const runs = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocs = testing.AllocsPerRun(runs, func() {
			if _, err := c.Exchange(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		})
		runtime.ReadMemStats(&after)
		return allocs, float64(after.TotalAlloc-before.TotalAlloc) / (runs + 1)
	}
	fewAllocs, few := cost(5)
	manyAllocs, many := cost(60) // 440,000 bytes more of history
	if manyAllocs > fewAllocs+2 {
		t.Errorf("an exchange makes %v allocations after 60 turns, %v after 5, want them equal", manyAllocs, fewAllocs)
	}
	if many > few+20_000 { // the pool of copy buffers may give one up
		t.Errorf("an exchange allocates %.0f bytes after 60 turns, %.0f after 5, want them equal", many, few)
	}
}
