package script_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/agent/model/script"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asked sends a body to a path of the server, as agent 0's first turn.
func asked(t *testing.T, srv *script.Server, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.Root()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Skein-Agent", "0.2; turn=1")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return do(t, req)
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
	ollamaPath   = "/api/chat"
)

// protocols are a small request in each, up to the closing brace.
var protocols = []struct{ name, path, request, stream, whole string }{
	{"chat", chatPath, `{"model":"m","messages":[{"role":"user","content":"hello"}]`, `,"stream":true,"stream_options":{"include_usage":true}}`, `}`},
	{"messages", messagesPath, `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"hello"}]`, `,"stream":true}`, `}`},
	{"ollama", ollamaPath, `{"model":"m","messages":[{"role":"user","content":"hello"}]`, `}`, `,"stream":false}`},
}

const everything = `- {reasoning: "let me think about it", say: "Grüße & <b>, wait", call: {bash: {command: "go test ./...", timeout: 5}}, call_raw: {name: plan, arguments: "{}"}`

// TestProtocols compares what is sent with the bytes written down in testdata.
func TestProtocols(t *testing.T) {
	for _, p := range protocols {
		for _, mode := range []struct{ name, end, faults string }{
			{"whole", p.whole, ""}, {"stream", p.stream, ""}, {"kept_alive", p.stream, ", keepalive: true"}, {"malformed", p.stream, ", garbage: true"},
		} {
			name := p.name + "_" + mode.name
			t.Run(name, func(t *testing.T) {
				status, got := asked(t, listen(t, everything+mode.faults+"}\n"), p.path, p.request+mode.end)
				if status != http.StatusOK {
					t.Fatalf("answer = %d %s, want 200", status, got)
				}
				golden(t, filepath.Join("testdata", name+".txt"), got)
			})
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("answer = %s\nwant (%s) %s", got, path, want)
	}
}

func TestHowBodiesAreSent(t *testing.T) {
	for _, p := range protocols {
		_, stream := asked(t, listen(t, everything+"}\n"), p.path, p.request+p.stream)
		_, whole := asked(t, listen(t, everything+"}\n"), p.path, p.request+p.whole)
		for _, tc := range []struct{ way, stream, whole string }{
			{"split: 3", stream, whole},
			{"split: 100000", stream, whole},
			{"slow: 1us", stream, whole},
			{"crlf: true", strings.ReplaceAll(stream, "\n", "\r\n"), whole},
			{"crlf: true, split: 1", strings.ReplaceAll(stream, "\n", "\r\n"), whole},
			{"cut: 1000000", stream, whole},
			{"cut: false", stream, whole},
		} {
			srv := listen(t, everything+", "+tc.way+"}\n")
			for end, want := range map[string]string{p.stream: tc.stream, p.whole: tc.whole} {
				if _, got := asked(t, srv, p.path, p.request+end); got != want {
					t.Errorf("%s, %s: answer = %q, want %q", p.name, tc.way, got, want)
				}
			}
		}
	}
}

func TestCut(t *testing.T) {
	for _, p := range protocols {
		for _, end := range []string{p.stream, p.whole} {
			_, full := asked(t, listen(t, everything+"}\n"), p.path, p.request+end)
			for way, want := range map[string]string{"cut: 0": "", "cut: 7": full[:7], "cut: true": full[:len(full)/2], "cut: 7, split: 2": full[:7]} {
				srv := listen(t, everything+", "+way+"}\n")
				got, err := partly(t, srv.Root()+p.path, p.request+end)
				if got != want || err == nil {
					t.Errorf("%s, %s: body = %q, %v, want %q and a broken connection", p.name, way, got, err, want)
				}
			}
		}
	}
}

// TestRefusals sends each protocol what its servers refuse.
func TestRefusals(t *testing.T) {
	srv := listen(t, "- say: done\n")
	const (
		user   = `{"role":"user","content":"hello"}`
		head   = `{"model":"m","max_tokens":9000,"messages":[`
		use    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}`
		call   = `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}`
		mark   = `,"cache_control":{"type":"ephemeral"}`
	)
	marked := `{"type":"text","text":"x"` + mark + `},`
	for _, tc := range []struct{ name, path, body, want string }{
		{"no limit", messagesPath, `{"model":"m","messages":[` + user + `]}`, "max_tokens"},
		{"no model", messagesPath, `{"max_tokens":1,"messages":[` + user + `]}`, "model"},
		{"no messages", messagesPath, head + `]}`, "at least one"},
		{"system as a message", messagesPath, head + `{"role":"system","content":"x"}]}`, ""},
		{"assistant first", messagesPath, head + `{"role":"assistant","content":"x"}]}`, "first message"},
		{"unknown role", messagesPath, head + `{"role":"tool","content":"x"}]}`, `unexpected role \"tool\"`},
		{"empty text", messagesPath, head + `{"role":"user","content":""}]}`, "non-empty"},
		{"empty message", messagesPath, head + user + `,{"role":"assistant","content":[]},` + user + `]}`, "must have content"},
		{"unknown block", messagesPath, head + `{"role":"user","content":[{"type":"song"}]}]}`, "song"},
		{"unanswered call", messagesPath, head + user + `,` + use + `]}`, "no result for the calls a"},
		{"unanswered call, more said", messagesPath, head + user + `,` + use + `,` + user + `]}`, "no result for the calls a"},
		{"text before the result", messagesPath, head + user + `,` + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}]}`, "no result"},
		{"result of no call", messagesPath, head + user + `,` + use + `,` + result + `,` + result + `]}`, "unanswered call"},
		{"id with a dot", messagesPath, head + user + `,` + strings.ReplaceAll(use, `"a"`, `"a.b"`) + `]}`, "pattern"},
		{"input that is no object", messagesPath, head + user + `,` + strings.Replace(use, `{}`, `"{}"`, 1) + `]}`, "input"},
		{"thinking that was changed", messagesPath, head + user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}]}`, "invalid signature"},
		{"call of the user", messagesPath, head + `{"role":"user","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]}`, "belongs to the assistant"},
		{"five marks", messagesPath, head + `{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(marked, 5), ",") + `]}]}`, "maximum of 4"},
		{"small budget", messagesPath, head + user + `],"thinking":{"type":"enabled","budget_tokens":1000}}`, "1024"},
		{"budget beyond the limit", messagesPath, head + user + `],"thinking":{"type":"enabled","budget_tokens":9000}}`, "greater than"},
		{"temperature beside thinking", messagesPath, head + user + `],"temperature":0,"thinking":{"type":"enabled","budget_tokens":2000}}`, "temperature"},
		{"tool without a schema", messagesPath, head + user + `],"tools":[{"name":"f"}]}`, "input_schema"},
		{"ollama: no model", ollamaPath, `{"messages":[` + user + `]}`, "model is required"},
		{"ollama: content in parts", ollamaPath, head + `{"role":"user","content":[{"type":"text","text":"x"}]}]}`, "cannot unmarshal"},
		{"ollama: arguments as a text", ollamaPath, head + strings.Replace(call, `{}`, `"{}"`, 1) + `]}`, "no object"},
		{"ollama: unanswered call", ollamaPath, head + call + `,` + user + `]}`, "no result for the calls f"},
		{"ollama: result of another tool", ollamaPath, head + call + `,{"role":"tool","tool_name":"g","content":"x"}]}`, `a result for \"g\"`},
	} {
		status, body := asked(t, srv, tc.path, tc.body)
		if status != http.StatusBadRequest || !strings.Contains(body, tc.want) {
			t.Errorf("%s: answer = %d %s, want 400 …%s…", tc.name, status, body, tc.want)
		}
		var in struct{ Error any }
		if err := json.Unmarshal([]byte(body), &in); err != nil || in.Error == nil {
			t.Errorf("%s: the body %s is no error", tc.name, body)
		}
	}
	if status, body := asked(t, srv, messagesPath, head+user+`,`+use+`,`+result+`]}`); status != http.StatusOK {
		t.Errorf("an answered call = %d %s, want 200", status, body)
	}
}

// TestMarkedCache shows that only what is marked is cached, that marks move without harm,
// and what the counters say.
func TestMarkedCache(t *testing.T) {
	srv := listen(t, "- say: done\n")
	block := func(text string, marked bool) string {
		mark := ""
		if marked {
			mark = `,"cache_control":{"type":"ephemeral"}`
		}
		return `{"type":"text","text":"` + strings.Repeat(text, 400) + `"` + mark + `}`
	}
	said := func(blocks ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[` + strings.Join(blocks, ",") + `]}]}`
	}
	for _, tc := range []struct {
		name, body         string
		input, write, read int64
	}{
		{"nothing marked", said(block("a", false)), 108, 0, 0},
		{"marked", said(block("a", true)), 0, 108, 0},
		{"the mark moves on", said(block("a", false), block("b", true)), 0, 152, 64},
		{"only the front is marked", said(block("a", true), block("c", false)), 108, 44, 64},
		{"nothing marked again", said(block("a", false)), 108, 0, 0},
	} {
		_, body := asked(t, srv, messagesPath, tc.body)
		var in struct {
			Usage struct {
				Input int64 `json:"input_tokens"`
				Write int64 `json:"cache_creation_input_tokens"`
				Read  int64 `json:"cache_read_input_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		if u := in.Usage; u.Input != tc.input || u.Write != tc.write || u.Read != tc.read {
			t.Errorf("%s: usage = %+v, want input %d, written %d, read %d", tc.name, u, tc.input, tc.write, tc.read)
		}
	}
}

// TestWindow shows that Ollama's server counts only what fits into its window.
func TestWindow(t *testing.T) {
	srv := listen(t, "- say: done\n")
	long := `{"model":"m","stream":false,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 8000) + `"}]`
	for end, want := range map[string]string{
		`}`:                               `"prompt_eval_count":4096`,
		`,"options":{"num_ctx":8192}}`:    `"prompt_eval_count":8192`,
		`,"options":{"num_ctx":1000000}}`: `"prompt_eval_count":10007`,
	} {
		if _, got := asked(t, srv, ollamaPath, long+end); !strings.Contains(got, want) {
			t.Errorf("answer to …%s = %s, want %s", end, got, want)
		}
	}
}

func TestArgumentsThatAProtocolCannotSay(t *testing.T) {
	srv := listen(t, "- call_raw: {name: f, arguments: '{\"a\": '}\n")
	for _, p := range protocols[1:] {
		status, body := asked(t, srv, p.path, p.request+p.whole)
		if status != http.StatusInternalServerError || !strings.Contains(body, "no JSON object") {
			t.Errorf("%s: answer = %d %s, want 500 and the reason", p.name, status, body)
		}
	}
}
