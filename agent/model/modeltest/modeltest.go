// Package modeltest holds the contract that every [model.Client] fulfils, as tests over
// real HTTP against the scripted model. It is imported by tests only.
package modeltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/script"
)

// Connect returns a client for the scripted model at a base URL. The client tells its
// requests' origin, and gives up its connections when the test ends.
type Connect func(t *testing.T, url string) model.Client

// Run checks that the clients of connect fulfil the contract, and leave no goroutine behind.
func Run(t *testing.T, connect Connect) {
	ignore := goleak.IgnoreCurrent()
	for _, tc := range replies {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, connect) })
	}
	for _, tc := range failures {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, connect) })
	}
	t.Run("cancel", func(t *testing.T) { cancelled(t, connect) })
	t.Run("nobody there", func(t *testing.T) { nobody(t, connect) })
	t.Run("parallel use", func(t *testing.T) { parallel(t, connect) })
	t.Run("replay", func(t *testing.T) { replay(t, connect) })
	t.Run("prefix", func(t *testing.T) { prefix(t, connect) })
	goleak.VerifyNone(t, ignore)
}

// Serve starts the scripted model for one test and returns it with a client.
func Serve(t *testing.T, connect Connect, rules string) (*script.Server, model.Client) {
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
	return srv, connect(t, srv.URL())
}

// ask sends one user message as agent 0's first turn.
func ask(ctx context.Context, t *testing.T, c model.Client, text string) (model.Reply, *model.Transcript, error) {
	t.Helper()
	tr := model.NewTranscript(c)
	add(t, tr, model.Message{Role: model.User, Text: text})
	reply, err := c.Exchange(ctx, model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: 1}})
	return reply, tr, err
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

const (
	promptly = 100 * time.Millisecond // how soon a cancelled exchange returns
	patience = 10 * time.Second       // how long a test waits for what has to happen
)

// cancelled checks that an exchange ends soon after its context, with the context's error.
func cancelled(t *testing.T, connect Connect) {
	srv, c := Serve(t, connect, "- say: late\n  latency: 1h\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancelledAt := make(chan time.Time, 1)
	go func() { // the receive below waits for it
		for end := time.Now().Add(patience); len(srv.Requests()) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // the request is on its way, over real HTTP
		}
		cancelledAt <- time.Now()
		cancel()
	}()
	_, _, err := ask(ctx, t, c, "hello")
	took := time.Since(<-cancelledAt)
	var failed *model.Error
	if !errors.Is(err, context.Canceled) || errors.As(err, &failed) {
		t.Errorf("Exchange = %#v, want the context's error and no failure of the provider", err)
	}
	if asked := len(srv.Requests()); asked != 1 {
		t.Errorf("the server saw %d requests, want 1", asked)
	}
	if took > promptly {
		t.Errorf("Exchange returned %v after the cancel, want at most %v", took, promptly)
	}

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := ask(ctx, t, c, "hello"); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &failed) {
		t.Errorf("Exchange past its caller's deadline = %#v, want the context's error", err)
	}
}
