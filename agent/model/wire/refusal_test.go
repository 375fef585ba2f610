package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skein/agent/model"
	"skein/agent/model/wire"
)

// A refusal counts although its body never ends: its status, its words, and when to come back.
func TestARefusalWhoseBodyDoesNotEnd(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Retry-After", "2")
		status := http.StatusUnauthorized
		if strings.Contains(r.URL.Path, "429") {
			status = http.StatusTooManyRequests
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"bad key"}}`)
		_ = http.NewResponseController(w).Flush()
		<-over
	}))
	defer server.Close()
	defer close(over)
	for path, want := range map[string]struct {
		status int
		again  bool
		after  time.Duration
	}{"/401": {401, false, 0}, "/429": {429, true, 2 * time.Second}} {
		c, err := wire.New(wire.Options{BaseURL: server.URL, Path: path, Name: "test", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ask(t.Context(), wire.Call{Body: wire.Body{}, Stream: true}, func(io.Reader) error { return nil })
		var e *model.Error
		if !errors.As(err, &e) || e.Status != want.status || e.Again != want.again || e.RetryAfter != want.after || !strings.Contains(e.Message, "bad key") {
			t.Errorf("Ask %s = %+v, want status %d, again %v, after %v and the server's words", path, err, want.status, want.again, want.after)
		}
		c.Close()
	}
}

// A page with status 200 is no reply that broke off: asking again brings the same page.
func TestAWebPageIsNoReply(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<html><title>Welcome</title></html>")
	}))
	defer server.Close()
	for _, stream := range []bool{true, false} {
		c, err := wire.New(wire.Options{BaseURL: server.URL, Path: "/v1", Name: "test", Model: "m", NotOurAPI: "an API"})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ask(t.Context(), wire.Call{Body: wire.Body{}, Stream: stream}, func(io.Reader) error {
			t.Error("the page was read as a reply")
			return nil
		})
		var e *model.Error
		if !errors.As(err, &e) || e.Again || !strings.Contains(e.Message, "Welcome") || !strings.Contains(e.Hint(), "base URL of an API") {
			t.Errorf("Ask = %+v (hint %q), want the page's words and a hint", err, e.Hint())
		}
		c.Close()
	}
}
