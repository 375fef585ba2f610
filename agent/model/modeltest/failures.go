package modeltest

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"skein/agent/model"
)

// A failureCase is one fault and the error that the client makes of it.
type failureCase struct {
	name   string
	rule   string
	status int
	says   string // part of the error's message
}

var failures = []failureCase{
	{"unauthorized", `status: 401, body: '{"error":{"message":"Incorrect API key provided"}}'`, 401, "Incorrect API key provided"},
	{"not found", `status: 404`, 404, "not found"},
	{"too many requests", `status: 429, retry_after: 2`, 429, "too many requests"},
	{"server error", `status: 500, body: "{\"error\":\"on\\u001b[31m fire\"}"`, 500, "on[31m fire"},
	{"unavailable", `status: 503, body: ""`, 503, "service unavailable"},
	{"long words", `status: 502, body: "` + strings.Repeat("word ", 1000) + `"`, 502, "word word"},
	{"garbage", `garbage: true`, 200, "no chat completion"},
	{"cut", `say: "` + strings.Repeat("long ", 100) + `", cut: true`, 0, "ended before the reply was whole"},
	{"cut error", `status: 500, body: "something long enough", cut: true`, 500, "something"},
	{"error with status 200", `body: '{"error":{"message":"no provider left"}}'`, 200, "no provider left"},
	{"no choices", `body: '{"choices":[]}'`, 200, "no message"},
	{"null message", `body: '{"choices":[{"message":null}]}'`, 200, "no message"},
	{"message of another shape", `body: '{"choices":[{"message":"hello"}]}'`, 200, "cannot be read"},
	{"calls given twice", `body: '{"choices":[{"message":{"tool_calls":[{}],"tool_calls":[{},{}]}}]}'`, 200, "cannot be read"},
	{"null calls", `body: '{"choices":[{"message":{"tool_calls":[null]}}]}'`, 200, "cannot be read"},
	{"null", `body: 'null'`, 200, "no message"},
}

func (tc failureCase) run(t *testing.T, connect Connect) {
	_, c := Serve(t, connect, "- {when: {turn: 1}, "+tc.rule+"}\n- say: better\n")
	_, tr, err := ask(t.Context(), t, c, "hello")
	failed := requireError(t, err)
	if failed.Status != tc.status || !strings.Contains(failed.Message, tc.says) {
		t.Errorf("Exchange = status %d, %q, want status %d, …%q…", failed.Status, failed.Message, tc.status, tc.says)
	}
	if n := len([]rune(failed.Message)); n > 700 {
		t.Errorf("the message has %d characters, want at most 700", n)
	}
	if strings.ContainsFunc(failed.Error(), unicode.IsControl) {
		t.Errorf("Error() = %q, want no control characters", failed.Error())
	}
	// A failure leaves the client usable.
	reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: 2}})
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
func nobody(t *testing.T, connect Connect) {
	srv, c := Serve(t, connect, "- say: done\n")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err := ask(t.Context(), t, c, "hello")
	failed := requireError(t, err)
	if failed.Status != 0 || !strings.Contains(failed.Hint(), "is the server running at "+srv.URL()) {
		t.Errorf("Exchange = %v, hint %q, want status 0 and a hint with the URL", err, failed.Hint())
	}
}
