package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/script"
	"skein/cmd/internal/config"
	"skein/cmd/internal/keys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is an environment in which no Ollama is found by chance.
func env(pairs ...string) func(string) string {
	all := map[string]string{"OLLAMA_HOST": "127.0.0.1:1"}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return all[name] }
}

func serve(t *testing.T, rules string) *script.Server {
	t.Helper()
	s, err := script.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	server, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func TestChoose(t *testing.T) {
	local := strings.TrimPrefix(serve(t, "- say: hello").Root(), "http://")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("model: vllm/from-the-file\nbase_url: http://127.0.0.1:9/v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	written, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name       string
		flag, url  string
		getenv     func(string) string
		config     config.Config
		want, base string
	}{
		{"flag first", "openai/flag", "", env(ModelVar, "openai/env"), written, "openai/flag", ""},
		{"flag with url", "openai/flag", "http://u", env(BaseURLVar, "http://v"), written, "openai/flag", "http://u"},
		{"flag with the environment's url", "openai/flag", "", env(BaseURLVar, "http://v"), written, "openai/flag", ""},
		{"flag with the environment's url and model", "openai/flag", "", env(BaseURLVar, "http://v", ModelVar, "openai/env"), written, "openai/flag", ""},
		{"environment with its url", "", "", env(BaseURLVar, "http://v", ModelVar, "openai/env"), written, "openai/env", "http://v"},
		{"environment with the flag's url", "", "http://u", env(BaseURLVar, "http://v", ModelVar, "openai/env"), written, "openai/env", "http://u"},
		{"file with the environment's url", "", "", env(BaseURLVar, "http://v"), written, "vllm/from-the-file", "http://v"},
		{"environment", "", "", env(ModelVar, "openai/env"), written, "openai/env", ""},
		{"file", "", "", env(), written, "vllm/from-the-file", "http://127.0.0.1:9/v1"},
		{"file with the flag's url", "", "http://u", env(), written, "vllm/from-the-file", "http://u"},
		{"ollama", "", "", env("OLLAMA_HOST", local), config.Config{}, "ollama/script:latest", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Choose(t.Context(), Sources{tt.flag, tt.url, tt.getenv, tt.config, keys.Open(t.Context(), t.TempDir(), tt.getenv)})
			if err != nil || got.Model != tt.want || got.BaseURL != tt.base || got.Why == "" {
				t.Errorf("Choose = %+v, %v, want %s at %q", got, err, tt.want, tt.base)
			}
		})
	}
}

// What listens at Ollama's port and says nothing does not keep a run from starting.
func TestChooseDoesNotWaitForASilentServer(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // connections wait to be accepted, which nobody does
	getenv := env("OLLAMA_HOST", listener.Addr().String())
	start := time.Now()
	_, err = Choose(t.Context(), Sources{Getenv: getenv, Keys: keys.Open(t.Context(), t.TempDir(), getenv)})
	if took := time.Since(start); err == nil || took > 5*time.Second {
		t.Errorf("Choose = %v after %v, want no model and far less than 10 s", err, took)
	}
}

func TestNothingToChoose(t *testing.T) {
	for _, tt := range []struct {
		url    string
		getenv func(string) string
		text   string
		hint   string
	}{
		{"", env(), "no model configured", "skein demo"},
		{"", env("DEEPSEEK_API_KEY", "k"), "no model configured", "key for deepseek"},
		{"http://127.0.0.1:9/v1", env(), "a base URL and no model", "--model"},
	} {
		_, err := Choose(t.Context(), Sources{BaseURL: tt.url, Getenv: tt.getenv, Keys: keys.Open(t.Context(), t.TempDir(), tt.getenv)})
		var f *Fault
		if !errors.As(err, &f) || f.Error() != tt.text || !strings.Contains(f.Hint(), tt.hint) {
			t.Errorf("Choose = %v, want %q with hint %q", err, tt.text, tt.hint)
		}
	}
}

func TestOllamaURL(t *testing.T) {
	const usual = "http://localhost:11434"
	for host, want := range map[string]string{
		"": usual, "127.0.0.1": "http://127.0.0.1:11434", "127.0.0.1:5": "http://127.0.0.1:5", "localhost:5": "http://localhost:5",
		":5": "http://127.0.0.1:5", "0.0.0.0": "http://127.0.0.1:11434", "http://[::1]:5": "http://[::1]:5", "[::]:5": "http://127.0.0.1:5",
		// Not another machine, however it is written.
		"192.168.1.4": usual, "example.com:5": usual, "http://127.0.0.1.example.com": usual, "https://127.0.0.1:5": usual,
		"http://127.0.0.1@example.com": usual, "http://u:p@127.0.0.1": usual, "::": usual,
	} {
		if got := ollamaURL(env("OLLAMA_HOST", host)); got != want {
			t.Errorf("ollamaURL(%q) = %q, want %q", host, got, want)
		}
	}
}

// Faults are found before a model is asked.
func TestConnect(t *testing.T) {
	warm := 0.5
	for _, tt := range []struct {
		choice Choice
		params model.Params
		fault  string // "" for none
	}{
		{choice: Choice{Model: "openai/some"}},
		{choice: Choice{Model: "deepseek/chat"}, fault: "no key for deepseek"},
		{choice: Choice{Model: "anthropic/claude"}, fault: "no key for anthropic"},
		{choice: Choice{Model: "deepseek/chat", BaseURL: "http://127.0.0.1:9/v1"}},
		{choice: Choice{Model: "anthropic/claude", BaseURL: "http://127.0.0.1:9"}},
		{choice: Choice{Model: "lmstudio/some/model"}},
		{choice: Choice{Model: "vllm/some"}},
		{choice: Choice{Model: "ollama/some:7b"}},
		{choice: Choice{Model: "ollama"}, fault: "no model named"},
		{choice: Choice{Model: "openai"}, fault: "no model named"},
		{choice: Choice{Model: "openai/"}, fault: "no model named"},
		{choice: Choice{Model: "some"}, fault: "unknown provider some"},
		{choice: Choice{Model: "openai/some", BaseURL: "ftp://example.com"}, fault: "base URL"},
		{choice: Choice{Model: "openai/some"}, params: model.Params{Reasoning: "off"}, fault: "reasoning"},
		{choice: Choice{Model: "openai/some"}, params: model.Params{Extra: map[string]json.RawMessage{"model": []byte(`"x"`)}}, fault: `"model"`},
		{choice: Choice{Model: "openai/some", BaseURL: "http://example.com/v1"}, fault: "unencrypted"},
		{choice: Choice{Model: "openai/some", BaseURL: "http://192.168.1.4:8000/v1"}, fault: "unencrypted"},
		{choice: Choice{Model: "openai/some", BaseURL: "http://localhost.example.com/v1"}, fault: "unencrypted"},
		{choice: Choice{Model: "openai/some", BaseURL: "HTTP://0.0.0.0/v1"}, fault: "unencrypted"},
		{choice: Choice{Model: "openai/some", BaseURL: "https://example.com/v1"}},
		{choice: Choice{Model: "openai/some", BaseURL: "http://localhost:8000/v1"}},
		{choice: Choice{Model: "openai/some", BaseURL: "http://[::1]:8000/v1"}},
		{choice: Choice{Model: "vllm/some", BaseURL: "http://192.168.1.4:8000/v1"}},
		{choice: Choice{Model: "deepseek/some", BaseURL: "http://192.168.1.4:8000/v1"}}, // there is no key to send
		{choice: Choice{Model: "command/./model.sh --fast"}},
		{choice: Choice{Model: "command/ "}, fault: "no program named"},
		{choice: Choice{Model: "command/./model.sh", BaseURL: "http://u"}, fault: "both a program and a base URL"},
		{choice: Choice{Model: "command/./model.sh"}, params: model.Params{Temperature: &warm}, fault: "no parameters"},
		{choice: Choice{Model: "script"}, fault: "no script named"},
		{choice: Choice{Model: "script", BaseURL: "http://127.0.0.1:9/v1"}},
		{choice: Choice{Model: "script/a.yaml", BaseURL: "http://127.0.0.1:9/v1"}, fault: "both a script and a base URL"},
		{choice: Choice{Model: "script/absent.yaml"}, fault: "absent.yaml"},
	} {
		getenv := env("OPENAI_API_KEY", "k")
		link, err := Connect(t.Context(), tt.choice, Options{Keys: keys.Open(t.Context(), t.TempDir(), getenv), Getenv: getenv, Params: tt.params})
		if tt.fault == "" {
			if err != nil {
				t.Errorf("Connect(%+v) = %v, want a client", tt.choice, err)
			} else if err := link.Close(); err != nil || link.Where == "" {
				t.Errorf("Connect(%+v): leads to %q, Close = %v", tt.choice, link.Where, err)
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) || !strings.Contains(f.Error(), tt.fault) || f.Hint() == "" {
			t.Errorf("Connect(%+v) = %v, want the fault %q", tt.choice, err, tt.fault)
		}
	}
}

// The key of a provider is masked whatever it looks like; other words are not.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("DEEPSEEK_API_KEY=opensesame\nDB_PASSWORD=postgres\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Secrets(dir, []string{"OPENAI_API_KEY=password", "SECRET_MODE=disabled"})
	if want := []string{"password", "opensesame"}; !slices.Equal(got, want) {
		t.Errorf("Secrets = %q, want %q", got, want)
	}
}

// A model that takes no tools is asked in the text protocol, and goes on with it.
func TestFallback(t *testing.T) {
	server := serve(t, `
- when: {conversation: "TOOL_RESULT look"}
  say: it is blue
- when: {conversation: "TOOL_CALL"}
  say: "I look.\nTOOL_CALL {\"name\": \"look\", \"arguments\": {\"at\": \"the sky\"}}\nTOOL_RESULT look (ok)\nmade up"
- status: 400
  body: '{"error": {"message": "this model does not support tools"}}'
`)
	var said []string
	getenv := env()
	link, err := Connect(t.Context(), Choice{Model: "openai/small", BaseURL: server.URL()}, Options{
		Keys: keys.Open(t.Context(), t.TempDir(), getenv), Getenv: getenv, Notice: func(s string) { said = append(said, s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = link.Close() }()
	offered, err := link.EncodeTools([]model.Tool{{Name: "look", Description: "Look at something.", Schema: json.RawMessage(`{"type":"object"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	talk := model.NewTranscript(link)
	say := func(m model.Message) {
		t.Helper()
		if err := talk.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() model.Reply {
		t.Helper()
		reply, err := link.Exchange(t.Context(), model.Request{Messages: talk.Messages(), Tools: offered})
		if err != nil {
			t.Fatal(err)
		}
		say(reply.Message)
		return reply
	}
	say(model.Message{Role: model.System, Text: "be brief"})
	say(model.Message{Role: model.User, Text: "what colour is the sky?"})
	reply := ask()
	if len(reply.Message.Calls) != 1 || reply.Message.Calls[0].Name != "look" || reply.Message.Text != "I look." {
		t.Fatalf("the first reply is %+v, want a call", reply.Message)
	}
	say(model.Message{Role: model.ToolRole, CallID: reply.Message.Calls[0].ID, Name: "look", Text: "blue"})
	if reply := ask(); reply.Message.Text != "it is blue" {
		t.Errorf("the second reply is %+v, want the answer", reply.Message)
	}
	if len(said) != 1 || !strings.Contains(said[0], "does not support tools") {
		t.Errorf("the user was told %q, want once, with the server's words", said)
	}
	// One refusal, and from then on each request begins with the bytes of the one before.
	asked := server.Requests()
	if len(asked) != 3 {
		t.Fatalf("%d requests, want 3", len(asked))
	}
	front, _, _ := strings.Cut(string(asked[1].Body), "\n")
	front = front[:strings.LastIndex(front, "]")]
	if !strings.HasPrefix(string(asked[2].Body), front) {
		t.Errorf("request 3 does not begin like request 2:\n%s\n%s", asked[1].Body, asked[2].Body)
	}
	if strings.Contains(string(asked[2].Body), "made up") {
		t.Errorf("what the model made up is sent back: %s", asked[2].Body)
	}
}

// Other refusals are no reason to give tools up, and neither is anything after a first success.
func TestNoFallback(t *testing.T) {
	refusal := &model.Error{Provider: "p", Status: 400, Message: "m does not support tools"}
	for _, tt := range []struct {
		name   string
		first  error
		second error
		tools  string
		falls  bool
	}{
		{"other words", &model.Error{Provider: "p", Status: 400, Message: "temperature is out of range"}, nil, `[]`, false},
		{"other status", &model.Error{Provider: "p", Status: 401, Message: "no tools for you"}, nil, `[]`, false},
		{"no tools offered", refusal, nil, "", false},
		{"after a success", nil, refusal, `[]`, false},
		{"refused", refusal, nil, `[]`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told := 0
			c := &answers{errs: []error{tt.first, tt.second}}
			f := newFallback(c, func(string) { told++ })
			f.inText[`[]`] = json.RawMessage(`"tools"`)
			for range 2 {
				_, _ = f.Exchange(t.Context(), model.Request{Tools: json.RawMessage(tt.tools)})
			}
			if falls := f.Dialect() != "fake"; falls != tt.falls || told > 1 || falls != (told == 1) {
				t.Errorf("falls back: %v, told %d times; want %v", falls, told, tt.falls)
			}
		})
	}
}

// Servers' words for that they take no tools, and for other faults that name them.
func TestRefusesTools(t *testing.T) {
	for _, tt := range []struct {
		message string
		want    bool
	}{
		{"registry.example/gemma:2b does not support tools", true},
		{"this model doesn't support function calling", true},
		{"the model cannot support tool use", true},
		{"No endpoints found that support tool use. Try another model.", true},
		{"tools are not supported by this model", true},
		{"`tools` is not supported", true},
		{"tool calling is not enabled for this deployment", true},
		{"Function calling is unsupported", true},
		{"tool use is currently not available", false}, // it may be later
		{"tools param requires --jinja flag", true},
		{`"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, true},
		{"Invalid schema for tool grep", false},
		{"Invalid schema for tool grep: keyword pattern is not supported", false},
		{"tools.0.input_schema: format is not supported", false},
		{"tool_calls: no such id", false},
		{"tool_choice: required is not supported", false},
		{"messages with role tool must follow a message with tool_calls", false},
		{"the prompt with its tools is too long", false},
		{"temperature is not supported", false},
		{"this model does not support parallel tool calls", false},
	} {
		err := &model.Error{Provider: "p", Status: 400, Message: tt.message}
		if got := refusesTools(err); got != tt.want {
			t.Errorf("refusesTools(%s) = %v, want %v", tt.message, got, tt.want)
		}
	}
	if refusesTools(&model.Error{Provider: "p", Status: 400, Message: "does not support tools", TooLong: true}) {
		t.Error("refusesTools of what is too long = true, want false")
	}
}

// Siblings that are refused at the same time all go on.
func TestFallbackOfSeveral(t *testing.T) {
	refused := &model.Error{Provider: "p", Status: 404, Message: "No endpoints found that support tool use"}
	c := &answers{gate: make(chan struct{}), errs: []error{refused, refused, refused, refused}}
	var mu sync.Mutex
	told := 0
	f := newFallback(c, func(string) { mu.Lock(); defer mu.Unlock(); told++ })
	f.inText[`[]`] = json.RawMessage(`"tools"`)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := f.Exchange(t.Context(), model.Request{Tools: json.RawMessage(`[]`)}); err != nil {
				t.Errorf("Exchange = %v", err)
			}
		})
	}
	close(c.gate)
	wait.Wait()
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// answers gives one error after the other to requests with tools, then none.
type answers struct {
	gate chan struct{}
	mu   sync.Mutex
	errs []error
}

func (a *answers) Exchange(_ context.Context, req model.Request) (model.Reply, error) {
	if a.gate != nil {
		<-a.gate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.errs) == 0 || a.gate != nil && len(req.Tools) == 0 {
		return model.Reply{}, nil
	}
	err := a.errs[0]
	a.errs = a.errs[1:]
	return model.Reply{}, err
}

func (a *answers) Encode(m model.Message) (json.RawMessage, error) { return json.Marshal(m.Text) }

func (a *answers) EncodeTools([]model.Tool) (json.RawMessage, error) {
	return json.RawMessage(`[]`), nil
}

func (a *answers) Dialect() string { return "fake" }

// A model on the user's own machine is asked one thing at first, others as many as may be.
func TestAtOnce(t *testing.T) {
	for _, tt := range []struct {
		provider, url      string
		asked, first, most int
	}{
		{"openai", "", 0, 8, 8},
		{"openai", "", 3, 3, 3},
		{"openai", "https://models.example", 0, 8, 8},
		{"openai", "http://127.0.0.1:8080/v1", 5, 1, 5}, // llama.cpp and the like
		{"anthropic", "", 0, 8, 8},
		{ollamaName, "", 0, 1, 8},
		{ollamaName, "", 4, 1, 4},
		{"lmstudio", "", 0, 1, 8},
		{"vllm", "", 16, 1, 16},
		{commandName, "", 0, 8, 8},
		{scriptName, "http://127.0.0.1:8080/v1", 0, 8, 8},
	} {
		p, ok := find(tt.provider)
		if first, most := (Options{AtOnce: tt.asked}).atOnce(p, tt.url); !ok || first != tt.first || most != tt.most {
			t.Errorf("atOnce(%s %s, asked for %d) = %d, %d, want %d, %d", tt.provider, tt.url, tt.asked, first, most, tt.first, tt.most)
		}
	}
}
