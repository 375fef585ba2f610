package modeltest

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"skein/agent/model"
)

// A failureCase is one fault and the error that the client makes of it.
type failureCase struct {
	name    string
	rule    string
	status  int    // 0 for any
	says    string // part of the error's message
	again   verdict
	tooLong bool
	wait    [2]time.Duration // RetryAfter is between these
}

// A verdict is whether an error has to say that the same request may succeed later.
type verdict int

const (
	no verdict = iota
	yes
	either
)

func (m *mode) failures() []failureCase {
	long := `say: "` + strings.Repeat("long ", 100) + `"`
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	cases := []failureCase{
		{name: "bad request", rule: `status: 400`, status: 400, says: "bad request"},
		{name: "unauthorized", rule: `status: 401`, status: 401, says: "unauthorized"},
		{name: "forbidden", rule: `status: 403`, status: 403, says: "forbidden"},
		{name: "not found", rule: `status: 404`, status: 404, says: "not found"},
		{name: "timeout", rule: `status: 408`, status: 408, again: yes},
		{name: "conflict", rule: `status: 409`, status: 409, again: yes},
		{name: "unprocessable", rule: `status: 422`, status: 422, says: "unprocessable"},
		{name: "too many requests", rule: `status: 429`, status: 429, says: "too many requests", again: yes},
		{name: "retry after", rule: `status: 429, retry_after: 2`, status: 429, again: yes, wait: [2]time.Duration{second(2), second(2)}},
		{name: "retry after a part of a second", rule: `status: 429, retry_after: "0.5"`, status: 429, again: yes, wait: [2]time.Duration{0, second(1)}},
		{name: "retry at a date", rule: `status: 503, retry_after_date: 2`, status: 503, again: yes, wait: [2]time.Duration{second(1), second(3)}},
		{name: "retry at a date gone by", rule: `status: 503, retry_after: "Thu, 01 Jan 1970 00:00:00 GMT"`, status: 503, again: yes},
		{name: "retry some time", rule: `status: 503, retry_after: soon`, status: 503, again: yes},
		{name: "server error", rule: `status: 500, body: "{\"error\":\"on\\u001b[31m fire\"}"`, status: 500, says: "on[31m fire", again: yes},
		{name: "unavailable", rule: `status: 503, body: ""`, status: 503, says: "service unavailable", again: yes},
		{name: "overloaded", rule: `status: 529`, status: 529, again: yes},
		{name: "long words", rule: `status: 502, body: "` + strings.Repeat("word ", 1000) + `"`, status: 502, says: "word word", again: yes},
		{name: "cut error", rule: `status: 500, body: "something long enough", cut: true`, status: 500, says: "something", again: yes},
		{name: "a page", rule: `garbage: true`, again: either},
		{name: "null", rule: `body: 'null'`, again: either},
		{name: "cut", rule: long + `, cut: true`, again: yes},
		{name: "cut before the first byte", rule: long + `, cut: 0`, again: yes},
		{name: "malformed", rule: long + `, garbage: true`, again: either},
	}
	if m.dialect.tooLong != "" {
		cases = append(cases, failureCase{name: "too long", rule: `status: 400, ` + body(m.dialect.tooLong), status: 400, tooLong: true})
	}
	if m.stream {
		return append(cases, failureCase{name: "trouble in the middle", rule: body(m.dialect.trouble), says: "no provider left", again: yes})
	}
	return append(cases, m.dialect.broken...)
}

func (tc failureCase) run(t *testing.T, m *mode) {
	_, c := m.serve(t, "- {when: {turn: 1}, "+tc.rule+"}\n- say: better\n")
	reply, tr, err := ask(t.Context(), t, c, "hello", nil)
	failed := requireError(t, err)
	if reply.Message.Raw != nil || reply.Message.Text != "" {
		t.Errorf("Exchange = %s beside the error, want no reply", reply.Message.Raw)
	}
	if tc.status != 0 && failed.Status != tc.status || !strings.Contains(failed.Message, tc.says) {
		t.Errorf("Exchange = status %d, %q, want status %d, …%q…", failed.Status, failed.Message, tc.status, tc.says)
	}
	if tc.again != either && failed.Again != (tc.again == yes) {
		t.Errorf("Exchange = %v, again %t, want the opposite", failed, failed.Again)
	}
	if failed.TooLong != tc.tooLong {
		t.Errorf("Exchange = %v, too long %t, want %t", failed, failed.TooLong, tc.tooLong)
	}
	if failed.RetryAfter < tc.wait[0] || failed.RetryAfter > tc.wait[1] {
		t.Errorf("Exchange = %v, retry after %v, want %v to %v", failed, failed.RetryAfter, tc.wait[0], tc.wait[1])
	}
	if n := len([]rune(failed.Message)); n > 700 {
		t.Errorf("the message has %d characters, want at most 700", n)
	}
	if strings.ContainsFunc(failed.Error(), unicode.IsControl) {
		t.Errorf("Error() = %q, want no control characters", failed.Error())
	}
	// A failure leaves the client usable.
	reply, err = c.Exchange(t.Context(), turn(tr, 2))
	if err != nil || reply.Message.Text != "better" {
		t.Errorf("Exchange after the failure = %q, %v, want better", reply.Message.Text, err)
	}
}

func requireError(t *testing.T, err error) *model.Error {
	t.Helper()
	var failed *model.Error
	if !errors.As(err, &failed) {
		t.Fatalf("Exchange = %v, want a *model.Error", err)
	}
	if failed.Provider == "" || failed.Message == "" {
		t.Errorf("Exchange = provider %q, message %q, want both", failed.Provider, failed.Message)
	}
	return failed
}

// nobody checks what is said when no server listens at the address.
func nobody(t *testing.T, m *mode) {
	srv, c := m.serve(t, "- say: done\n")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := ask(t.Context(), t, c, "hello", nil)
	failed := requireError(t, err)
	if failed.Status != 0 || !strings.Contains(failed.Hint(), "is the server running at "+srv.Root()) {
		t.Errorf("Exchange = %v, hint %q, want status 0 and a hint with the URL", err, failed.Hint())
	}
}
