package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"skein/tools/gate"
)

func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		in     string
		ok     bool
		reason string
	}{
		{"y\n", true, ""},
		{" YES \n", true, ""},
		{"n\n", false, ""},
		{"No\n", false, ""},
		{"", false, ""},
		{"y", false, ""}, // cut off: it was not sent
		{"n use the other file\n", false, "use the other file"},
		{"what?\n\ny\n", true, ""},
		{"yes but not so\nn\n", false, ""},
		{"t\n", false, ""},
	} {
		ok, reason, err := gate.Terminal(strings.NewReader(tt.in), io.Discard).Ask(t.Context(), gate.Question{})
		if ok != tt.ok || reason != tt.reason || err != nil {
			t.Errorf("Ask with input %q = %v, %q, %v; want %v, %q", tt.in, ok, reason, err, tt.ok, tt.reason)
		}
	}
	broken := errors.New("broken")
	if ok, _, err := gate.Terminal(iotest.ErrReader(broken), io.Discard).Ask(t.Context(), gate.Question{}); ok || !errors.Is(err, broken) {
		t.Errorf("Ask with a broken input = %v, %v; want its error", ok, err)
	}
	mute := writer(func([]byte) (int, error) { return 0, broken })
	if ok, _, err := gate.Terminal(strings.NewReader("y\n"), mute).Ask(t.Context(), gate.Question{}); ok || !errors.Is(err, broken) {
		t.Errorf("Ask that nobody could read = %v, %v; want the error", ok, err)
	}
}

// One answer is for one question: what came with it was typed before the next was shown.
func TestTerminalReadsOneAnswerPerQuestion(t *testing.T) {
	term := gate.Terminal(strings.NewReader("y\ny\ny\n"), io.Discard)
	for i, want := range []bool{true, false, false} {
		if ok, _, err := term.Ask(t.Context(), gate.Question{}); ok != want || err != nil {
			t.Errorf("answer %d = %v, %v; want %v", i, ok, err, want)
		}
	}
}

// A long detail is cut in the middle, by lines and within them, and the question says so: it
// must not scroll away what it asks.
func TestTerminalShowsAScreenful(t *testing.T) {
	numbered := func(from, to int) (s string) {
		for i := from; i <= to; i++ {
			s += fmt.Sprintf("  | line %d\n", i)
		}
		return s
	}
	for _, tt := range []struct{ detail, want string }{
		{strings.ReplaceAll(numbered(1, 200), "  | ", ""), numbered(1, 200)},
		{strings.ReplaceAll(numbered(1, 201), "  | ", ""), numbered(1, 100) + "  … 1 lines are not shown …\n" + numbered(102, 201)},
		{strings.ReplaceAll(numbered(1, 5000), "  | ", ""), numbered(1, 100) + "  … 4800 lines are not shown …\n" + numbered(4901, 5000)},
		{
			"a" + strings.Repeat("é", 3000) + "z",
			"  | a" + strings.Repeat("é", 499) + "\n  … 4004 bytes of this line are not shown …\n  | " + strings.Repeat("é", 499) + "z\n",
		},
	} {
		var out strings.Builder
		if _, _, err := gate.Terminal(strings.NewReader("n\n"), &out).Ask(t.Context(), gate.Question{Detail: tt.detail}); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(out.String(), "\nin \n")
		got, _, _ = strings.Cut(got, "allow? ")
		if got != tt.want {
			t.Errorf("a detail of %d bytes is shown as\n%s\nwant\n%s", len(tt.detail), got, tt.want)
		}
	}
}

func TestTerminalShowsWhatIsAsked(t *testing.T) {
	var out strings.Builder
	q := gate.Question{
		Agent: "0.2", Purpose: "fix \x1b[31m\nit", Tool: "bash", Dir: "/w",
		Detail: "rm -rf x\nallow? y = yes \x1b[2K\r\u202eevil\xff\ttab é\n\n",
	}
	if _, _, err := gate.Terminal(strings.NewReader("n\n"), &out).Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := "\nagent 0.2 asks: fix \\x1b[31m\\nit (bash)\nin /w\n" +
		"  | rm -rf x\n" +
		"  | allow? y = yes \\x1b[2K\\x0d\\u202eevil\\xff\ttab é\n" +
		"allow? y = yes, n = no, n REASON = no, and tell the model why: "
	if out.String() != want {
		t.Errorf("shown %q, want %q", out.String(), want)
	}
}

// Questions of several agents come one after the other, each with its own answer.
func TestTerminalAsksOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		var mu sync.Mutex
		shown := 0
		out := writer(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			shown += strings.Count(string(p), " asks: ")
			return len(p), nil
		})
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return shown
		}
		term := gate.Terminal(in, out)
		answers := make(chan bool, 2)
		for range 2 {
			go func() { // waited for by the two receives below
				ok, _, _ := term.Ask(t.Context(), gate.Question{})
				answers <- ok
			}()
		}
		for i, key := range []string{"y\n", "n\n"} {
			synctest.Wait()
			if got := count(); got != i+1 {
				t.Errorf("before answer %d: %d questions shown, want %d", i, got, i+1)
			}
			_, _ = io.WriteString(keys, key)
			if got := <-answers; got != (i == 0) {
				t.Errorf("answer %d = %v", i, got)
			}
		}
	})
}

// A cancelled question takes neither the turn nor the answer of the next, and a line that was
// meant for it answers no other.
func TestTerminalCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		term := gate.Terminal(in, io.Discard)
		brief := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ok, _, err := term.Ask(ctx, gate.Question{})
			if ok {
				t.Error("a question that was cancelled was answered yes")
			}
			return err
		}
		if err := brief(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ask without an answer = %v, want ctx's error", err)
		}
		_, _ = io.WriteString(keys, "y\n") // for the question that is gone
		synctest.Wait()
		done := make(chan bool)
		go func() { // waited for by the receive below
			ok, _, _ := term.Ask(t.Context(), gate.Question{})
			done <- ok
		}()
		synctest.Wait()
		if err := brief(); !errors.Is(err, context.DeadlineExceeded) { // waits for its turn
			t.Errorf("Ask while another is open = %v, want ctx's error", err)
		}
		_, _ = io.WriteString(keys, "n\n")
		if <-done {
			t.Error("a line typed before a question was shown answered it")
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
