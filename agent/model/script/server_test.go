package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T, rules string) *script.Server {
	t.Helper()
	s, err := script.Parse([]byte(rules))
	if err != nil {
		t.Fatalf("Parse(%s) = %v", rules, err)
	}
	srv, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}

// post sends a raw body and returns status and body of the answer.
func post(t *testing.T, srv *script.Server, origin, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if origin != "" {
		req.Header.Set("Skein-Agent", origin)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// said sends messages and returns the reply's message as it came.
func said(t *testing.T, srv *script.Server, origin, messages string) string {
	t.Helper()
	status, body := post(t, srv, origin, `{"model":"m","messages":[`+messages+`]}`)
	if status != http.StatusOK {
		return fmt.Sprintf("%d %s", status, body)
	}
	var in struct {
		Choices []struct {
			Message json.RawMessage `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil || len(in.Choices) != 1 {
		t.Fatalf("the body %s is no completion: %v", body, err)
	}
	return string(in.Choices[0].Message)
}

const (
	hello   = `{"role":"user","content":"hello"}`
	brief   = `{"role":"user","content":"You are a subagent.\n- at the same time: the other task\n\nTask:\nmine"}`
	history = `{"role":"user","content":"fix it"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"b","content":"exit=3\nno such file"},
		{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"port="},{"type":"text","text":"8143"}]}`
)

func TestRulesMatch(t *testing.T) {
	content := func(s string) string { return `{"role":"assistant","content":"` + s + `"}` }
	for _, tc := range []struct{ name, rules, origin, messages, want string }{
		{"first that fits", "- say: a\n- say: b\n", "", hello, content("a")},
		{"agent", "- {when: {agent: '0.1'}, say: a}\n- say: b\n", "0.1; turn=1", hello, content("a")},
		{"other agent", "- {when: {agent: '0.1'}, say: a}\n- say: b\n", "0.10; turn=1", hello, content("b")},
		{"agent without quotes", "- {when: {agent: 0.10}, say: a}\n- say: b\n", "0.10; turn=1", hello, content("a")},
		{"root without quotes", "- {when: {agent: 0}, say: a}\n- say: b\n", "0; turn=1", hello, content("a")},
		{"glob", "- {when: {agent: '0.*'}, say: a}\n- say: b\n", "0.2.1; turn=1", hello, content("a")},
		{"glob spares the root", "- {when: {agent: '0.*'}, say: a}\n- say: b\n", "0; turn=1", hello, content("b")},
		{"list", "- {when: {agent: ['0.1', '0.3']}, say: a}\n- say: b\n", "0.3; turn=1", hello, content("a")},
		{"no header, any agent", "- {when: {agent: '*'}, say: a}\n- say: b\n", "", hello, content("b")},
		{"turn", "- {when: {turn: 1}, say: a}\n- {when: {turn: 2}, say: b}\n", "0; turn=2", hello, content("b")},
		{"no header, turn", "- {when: {turn: 1}, say: a}\n- say: b\n", "", hello, content("b")},
		{"user", "- {when: {user: 'bye'}, say: a}\n- {when: {user: '^h(.)l'}, say: 'b${1}'}\n", "", hello, content("be")},
		{"no user", "- {when: {user: ''}, say: a}\n- say: b\n", "", `{"role":"system","content":"x"}`, content("b")},
		{"task", "- {when: {task: '^(?P<verb>\\w+) it'}, say: '${verb}'}\n", "", history, content("fix")},
		{"a sibling's task", "- {when: {task: other}, say: a}\n- {when: {task: '^mine$'}, say: b}\n", "", brief + `,{"role":"assistant","content":"x"},{"role":"user","content":"go on"}`, content("b")},
		{"user sees the whole message", "- {when: {user: other}, say: a}\n", "", brief, content("a")},
		{"results in order sent", "- {when: {result: '(?s)exit=(\\d).*file\\nport=(?P<port>\\d+)'}, say: '${1} ${port} ${2}'}\n", "", history, content("3 8143 8143")},
		{"no results", "- {when: {result: ''}, say: a}\n- say: b\n", "", hello, content("b")},
		{"results before the last reply", "- {when: {result: ''}, say: a}\n- say: b\n", "", history + `,{"role":"assistant","content":"x"}`, content("b")},
		{"groups counted through", "- {when: {user: '(fix)', result: '(exit)'}, say: '${2} ${1}'}\n", "", history, content("exit fix")},
		{"conversation", "- {when: {conversation: 'port=(\\d+)$'}, say: '${1}'}\n", "", history, content("8143")},
		{"conversation, an earlier call", "- {when: {conversation: '(?m)^f \\{\\}$', result: 'exit=(\\d)'}, say: '${1}'}\n", "", history, content("3")},
		{"conversation, the system", "- {when: {conversation: secret}, say: a}\n- say: b\n", "", `{"role":"system","content":"no secret"},` + hello, content("a")},
		{"not in the conversation", "- {when: {conversation: secret}, say: a}\n- say: b\n", "", hello, content("b")},
		{"unknown reference", "- say: 'echo ${HOME} ${1}'\n", "", hello, content("echo ${HOME} ${1}")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := said(t, listen(t, tc.rules), tc.origin, tc.messages); got != tc.want {
				t.Errorf("reply = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestScriptOfTheExemplars(t *testing.T) {
	srv := listen(t, `# a child that delegates again
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "correct the spelling in greeting.txt", access: write}}
- when: {agent: "0.1", result: "Delegation depth limit reached"}
  calls:
    - search_replace: {path: greeting.txt, search: helo, replace: "<hello> & ${1}", all: true, n: 1.5, list: [1, null, {z: 1, a: 2}]}
    - search_replace:
  call_raw: {name: bash, arguments: '{"command": '}
- say: done
`)
	for _, tc := range []struct{ origin, messages, want string }{
		{"0; turn=1", hello, `{"role":"assistant","content":"","tool_calls":[{"id":"call_0_1_1","type":"function","function":{"name":"delegate_task","arguments":"{\"task\":\"correct the spelling in greeting.txt\",\"access\":\"write\"}"}}]}`},
		{"0; turn=2", hello, `{"role":"assistant","content":"done"}`},
		{
			"0.1; turn=2",
			strings.Replace(history, "exit=3", "Delegation depth limit reached: a subagent cannot delegate.", 1),
			`{"role":"assistant","content":"","tool_calls":[` +
				`{"id":"call_0.1_2_1","type":"function","function":{"name":"search_replace","arguments":"{\"path\":\"greeting.txt\",\"search\":\"helo\",\"replace\":\"<hello> & ${1}\",\"all\":true,\"n\":1.5,\"list\":[1,null,{\"z\":1,\"a\":2}]}"}},` +
				`{"id":"call_0.1_2_2","type":"function","function":{"name":"search_replace","arguments":"{}"}},` +
				`{"id":"call_0.1_2_3","type":"function","function":{"name":"bash","arguments":"{\"command\": "}}]}`,
		},
	} {
		if got := said(t, srv, tc.origin, tc.messages); got != tc.want {
			t.Errorf("reply to %s = %s, want %s", tc.origin, got, tc.want)
		}
	}
}

func TestNoRuleFits(t *testing.T) {
	srv := listen(t, "- {when: {agent: '0'}, say: a}\n")
	got := said(t, srv, "0.2; turn=2", history)
	want := `422 {"error":{"message":"no rule of the script fits agent 0.2, turn 2, results \"exit=3\\nno such file\\nport=8143\"","type":"no_rule_fits"}}`
	if got != want {
		t.Errorf("reply = %s, want %s", got, want)
	}
	if r := srv.Requests(); len(r) != 1 || r[0].Line != 0 || r[0].Agent != "0.2" || r[0].Turn != 2 {
		t.Errorf("Requests() = %+v, want the one that no rule fits", r)
	}
}

func TestMalformedRequests(t *testing.T) {
	srv := listen(t, "- say: done\n")
	call := `{"role":"assistant","content":"","tool_calls":[{"id":"a"}]}`
	for _, tc := range []struct{ name, origin, body, want string }{
		{"no JSON", "", `{`, "no chat request"},
		{"no messages", "", `{"messages":[]}`, "at least one"},
		{"empty tools", "", `{"messages":[` + hello + `],"tools":[]}`, "tools"},
		{"stream options without a stream", "", `{"messages":[` + hello + `],"stream_options":{"include_usage":true}}`, "stream_options"},
		{"role", "", `{"messages":[{"role":"robot"}]}`, `messages[0]: unknown role \"robot\"`},
		{"content", "", `{"messages":[{"role":"user","content":7}]}`, "neither a text"},
		{"unanswered call", "", `{"messages":[` + hello + `,` + call + `]}`, "no result for the calls a"},
		{"unanswered call, more said", "", `{"messages":[` + call + `,` + hello + `]}`, "messages[1]: no result for the calls a"},
		{"result of no call", "", `{"messages":[` + hello + `,{"role":"tool","tool_call_id":"a","content":""}]}`, `messages[1]: a result for \"a\"`},
		{"answered twice", "", `{"messages":[` + call + `,{"role":"tool","tool_call_id":"a"},{"role":"tool","tool_call_id":"a"}]}`, "messages[2]"},
		{"id twice", "", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a"},{"id":"a"}]}]}`, "there twice"},
		{"header", "0.2", `{"messages":[` + hello + `]}`, "header Skein-Agent"},
		{"turn zero", "0; turn=0", `{"messages":[` + hello + `]}`, "header Skein-Agent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, body := post(t, srv, tc.origin, tc.body)
			if status != http.StatusBadRequest || !strings.Contains(body, tc.want) || !strings.Contains(body, `"type":"invalid_request_error"`) {
				t.Errorf("answer = %d %s, want 400 …%s…", status, body, tc.want)
			}
		})
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	rules := "- {when: {turn: 2}, say: x, call: {f: {b: 1, a: 2}}, reasoning: hm}\n"
	body := `{"model":"m","messages":[` + history + `]}`
	_, first := post(t, listen(t, rules), "0.1; turn=2", body)
	_, second := post(t, listen(t, rules), "0.1; turn=2", body)
	if first != second {
		t.Errorf("two servers answered\n%s\nand\n%s", first, second)
	}
}

func TestOtherPaths(t *testing.T) {
	srv := listen(t, "- say: done\n")
	for _, tc := range []struct {
		method, path string
		status       int
		want         string
	}{
		{http.MethodGet, "/models", http.StatusOK, `"id":"script"`},
		{http.MethodGet, "/chat/completions", http.StatusNotFound, "nothing at GET /v1/chat/completions"},
		{http.MethodPost, "/responses", http.StatusNotFound, "nothing at POST /v1/responses"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, srv.URL()+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := do(t, req); status != tc.status || !strings.Contains(body, tc.want) {
			t.Errorf("%s %s = %d %s, want %d …%s…", tc.method, tc.path, status, body, tc.status, tc.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	srv := listen(t, "- {status: 429, retry_after: 2}\n")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+"/chat/completions", strings.NewReader(`{"messages":[`+hello+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got := resp.Header.Get("Retry-After"); resp.StatusCode != http.StatusTooManyRequests || got != "2" {
		t.Errorf("answer = %d, Retry-After %q, want 429, 2", resp.StatusCode, got)
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	s, err := script.Parse([]byte("- say: done\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0", "127.0.0.1", ""} {
		srv, err := script.Listen(t.Context(), s, addr)
		if err == nil {
			_ = srv.Close()
			t.Errorf("Listen(%q) succeeded, want an error", addr)
		}
		var wrong *script.AddressError
		if !errors.As(err, &wrong) || wrong.Hint() == "" {
			t.Errorf("Listen(%q) = %v, want an *AddressError with a hint", addr, err)
		}
	}
}

func TestCloseEndsAnswersThatWait(t *testing.T) {
	srv := listen(t, "- {say: late, latency: 1h}\n")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+"/chat/completions", strings.NewReader(`{"messages":[`+hello+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	ended := make(chan error, 1)
	go func() { // the receive below waits for it
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		ended <- err
	}()
	for len(srv.Requests()) == 0 {
		time.Sleep(time.Millisecond) // the request is on its way, over real HTTP
	}
	start := time.Now()
	for range 2 { // closing twice is allowed
		if err := srv.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Close took %v, want it at once", took)
	}
	if err := <-ended; err == nil {
		t.Error("the request that waited was answered, want its connection ended")
	}
}

// partly returns what comes of a body, and how it ended.
func partly(t *testing.T, url, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Skein-Agent", "0.2; turn=1")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

func TestRetryAfterAsADate(t *testing.T) {
	srv := listen(t, "- {status: 503, retry_after_date: 2}\n")
	before := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+"/chat/completions", strings.NewReader(`{"messages":[`+hello+`]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	at, err := http.ParseTime(resp.Header.Get("Retry-After"))
	if wait := at.Sub(before); err != nil || wait < 2*time.Second || wait > 5*time.Second {
		t.Errorf("Retry-After = %v, %v from now, want a date in 2 s, at most whole seconds later", err, wait)
	}
}
