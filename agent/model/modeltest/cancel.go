package modeltest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"skein/agent/model"
)

const (
	promptly = 100 * time.Millisecond // how soon a cancelled exchange returns
	patience = 10 * time.Second       // how long a test waits for what has to happen
)

// cancelled checks that an exchange ends soon after its context, with the context's error.
func cancelled(t *testing.T, m *mode) {
	srv, c := m.serve(t, "- say: late\n  latency: 1h\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancelledAt := make(chan time.Time, 1)
	go func() { // the receive below waits for it
		for end := time.Now().Add(patience); len(srv.Requests()) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // the request is on its way, over real HTTP
		}
		cancelledAt <- time.Now()
		cancel()
	}()
	_, _, err := ask(ctx, t, c, "hello", nil)
	took := time.Since(<-cancelledAt)
	requireContext(t, err, context.Canceled)
	if asked := len(srv.Requests()); asked != 1 {
		t.Errorf("the server saw %d requests, want 1", asked)
	}
	if took > promptly {
		t.Errorf("Exchange returned %v after the cancel, want at most %v", took, promptly)
	}

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err = ask(ctx, t, c, "hello", nil)
	requireContext(t, err, context.DeadlineExceeded)
}

// cancelledInTheMiddle cancels while the reply is coming.
func cancelledInTheMiddle(t *testing.T, m *mode) {
	_, c := m.serve(t, `- {say: "`+strings.Repeat("and so on ", 1000)+`", split: 500, slow: 20ms}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tr := model.NewTranscript(c)
	add(t, tr, model.Message{Role: model.User, Text: "hello"})
	req := turn(tr, 1)
	var at time.Time
	stop := func() {
		if at.IsZero() {
			at = time.Now()
			cancel()
		}
	}
	if m.stream {
		req.Stream = func(model.Delta) { stop() }
	} else {
		timer := time.AfterFunc(50*time.Millisecond, stop)
		defer timer.Stop()
	}
	reply, err := c.Exchange(ctx, req)
	requireContext(t, err, context.Canceled)
	if took := time.Since(at); took > promptly {
		t.Errorf("Exchange returned %v after the cancel, want at most %v", took, promptly)
	}
	if reply.Message.Text != "" {
		t.Errorf("Exchange = %d bytes beside the error, want no reply", len(reply.Message.Text))
	}
}

func requireContext(t *testing.T, err, want error) {
	t.Helper()
	var failed *model.Error
	if !errors.Is(err, want) || errors.As(err, &failed) {
		t.Errorf("Exchange = %#v, want the context's error and no failure of the provider", err)
	}
}
