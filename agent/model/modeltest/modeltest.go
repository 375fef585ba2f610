// Package modeltest holds the contract that every [model.Client] of a provider fulfils, as
// tests over real HTTP against the scripted model. It is imported by tests only.
package modeltest

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/script"
)

// A Suite is the contract for the clients of one dialect.
type Suite struct {
	// Dialect picks what differs between protocols: "openai", "anthropic" or "ollama".
	Dialect string

	// Connect returns a client for the scripted model at a base URL, one that asks for
	// streams or for whole replies. The client tells its requests' origin, and gives up its
	// connections when the test ends.
	Connect func(t *testing.T, url string, stream bool) model.Client
}

// Run checks that the clients fulfil the contract, streaming and not, and leave no
// goroutine behind.
func Run(t *testing.T, s Suite) {
	known, ok := dialects[s.Dialect]
	if !ok {
		t.Fatalf("modeltest knows no dialect %q", s.Dialect)
	}
	ignore := goleak.IgnoreCurrent()
	for _, stream := range []bool{false, true} {
		name := "whole"
		if stream {
			name = "streamed"
		}
		t.Run(name, func(t *testing.T) { (&mode{Suite: s, dialect: known, stream: stream}).run(t) })
	}
	goleak.VerifyNone(t, ignore)
}

// A mode is a suite with one way to get replies.
type mode struct {
	Suite
	dialect dialect
	stream  bool
}

func (m *mode) run(t *testing.T) {
	for _, tc := range m.replies() {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, m) })
	}
	for _, tc := range m.failures() {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, m) })
	}
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *mode)
	}{
		{"delivery", delivery},
		{"megabytes", megabytes},
		{"cut anywhere", cutAnywhere},
		{"cancel", cancelled},
		{"cancel in the middle", cancelledInTheMiddle},
		{"nobody there", nobody},
		{"parallel use", parallel},
		{"calls of another provider", foreign},
		{"usage and cache", accounting},
		{"schema refused", schemaRefused},
		{"prefix", prefix},
		{"cost", cost},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, m) })
	}
}

// serve starts the scripted model for one test and returns it with a client.
func (m *mode) serve(t *testing.T, rules string) (*script.Server, model.Client) {
	t.Helper()
	s, err := script.Parse([]byte(rules))
	if err != nil {
		t.Fatalf("Parse(%s) = %v", rules, err)
	}
	srv, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return srv, m.Connect(t, srv.Root()+m.dialect.base, m.stream)
}

// heard is what a request's Stream was told.
type heard struct {
	text, reasoning strings.Builder
	deltas          int
}

func (h *heard) hear(d model.Delta) {
	h.text.WriteString(d.Text)
	h.reasoning.WriteString(d.Reasoning)
	h.deltas++
}

// check compares what was heard with what was said in the end.
func (h *heard) check(t *testing.T, m *mode, text string) {
	t.Helper()
	if got := h.text.String(); got != text && (m.stream || got != "") {
		t.Errorf("the deltas add up to %.200q, want %.200q", got, text)
	}
}

// ask sends one user message as agent 0's first turn.
func ask(ctx context.Context, t *testing.T, c model.Client, text string, h *heard) (model.Reply, *model.Transcript, error) {
	t.Helper()
	tr := model.NewTranscript(c)
	add(t, tr, model.Message{Role: model.User, Text: text})
	req := turn(tr, 1)
	if h != nil {
		req.Stream = h.hear
	}
	reply, err := c.Exchange(ctx, req)
	return reply, tr, err
}

// turn is agent 0's request for its n-th reply.
func turn(tr *model.Transcript, n int) model.Request {
	return model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: n}}
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func add(t fataler, tr *model.Transcript, m model.Message) {
	t.Helper()
	if err := tr.Append(m); err != nil {
		t.Fatalf("Append(%s) = %v", m.Role, err)
	}
}

// answer appends the reply and a result for each of its calls.
func answer(t fataler, tr *model.Transcript, reply model.Reply, text string) {
	t.Helper()
	add(t, tr, reply.Message)
	for _, call := range reply.Message.Calls {
		add(t, tr, model.Message{Role: model.ToolRole, CallID: call.ID, Name: call.Name, Text: text})
	}
}
