package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"skein/tools/gate"
)

func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want gate.Answer
	}{
		{"y\n", gate.Answer{Granted: true}},
		{" YES \n", gate.Answer{Granted: true}},
		{"r\n", gate.Answer{Granted: true, Again: true}},
		{"r", gate.Answer{}},
		{"r then\n", gate.Answer{}},
		{"n\n", gate.Answer{}},
		{"No\n", gate.Answer{}},
		{"", gate.Answer{}},
		{"y", gate.Answer{}}, // cut off: it was not sent
		{"n use the other file\n", gate.Answer{Reason: "use the other file"}},
		{"what?\n\ny\n", gate.Answer{Granted: true}},
		{"yes but not so\nn\n", gate.Answer{}},
		{"t\n", gate.Answer{}},
	} {
		got, err := gate.Terminal(strings.NewReader(tt.in), io.Discard).Ask(t.Context(), gate.Question{})
		if got != tt.want || err != nil {
			t.Errorf("Ask with input %q = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
	}
	broken := errors.New("broken")
	if a, err := gate.Terminal(iotest.ErrReader(broken), io.Discard).Ask(t.Context(), gate.Question{}); a.Granted || !errors.Is(err, broken) {
		t.Errorf("Ask with a broken input = %v, %v; want its error", a, err)
	}
	mute := writer(func([]byte) (int, error) { return 0, broken })
	if a, err := gate.Terminal(strings.NewReader("y\n"), mute).Ask(t.Context(), gate.Question{}); a.Granted || !errors.Is(err, broken) {
		t.Errorf("Ask that nobody could read = %v, %v; want the error", a, err)
	}
}

// The end of the input leaves the cursor behind the question: what comes next stands in a line of
// its own. A line that was typed brought its end.
func TestTerminalEndsTheLineOfItsQuestion(t *testing.T) {
	for in, want := range map[string]string{"": "\n", "y": "\n", "n\n": "tell the model why: "} {
		var out strings.Builder
		if _, err := gate.Terminal(strings.NewReader(in), &out).Ask(t.Context(), gate.Question{}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(out.String(), want) {
			t.Errorf("after %q the question ends with %q, want %q", in, out.String()[max(0, out.Len()-20):], want)
		}
	}
}

// The end of what is typed at a terminal, of which more may come, answers one question.
func TestTerminalEndAnswersOneQuestion(t *testing.T) {
	in := &ends{lines: []string{"", "y\n", "n no", "y\n"}}
	term := gate.Terminal(in, io.Discard)
	for i, want := range []bool{false, true, false, false, true} {
		if a, err := term.Ask(t.Context(), gate.Question{}); a.Granted != want || err != nil {
			t.Errorf("answer %d = %v, %v; want %v", i, a, err, want)
		}
	}
}

// ends is an input that is at its end after each line, and then goes on.
type ends struct {
	lines []string
	in    io.Reader
}

func (e *ends) Read(p []byte) (int, error) {
	if e.in == nil {
		e.in, e.lines = strings.NewReader(e.lines[0]), e.lines[1:]
	}
	n, err := e.in.Read(p)
	if err != nil {
		e.in = nil
	}
	return n, err
}

// One answer is for one question: what came with it was typed before the next was shown.
func TestTerminalReadsOneAnswerPerQuestion(t *testing.T) {
	term := gate.Terminal(strings.NewReader("y\ny\ny\n"), io.Discard)
	for i, want := range []bool{true, false, false} {
		if a, err := term.Ask(t.Context(), gate.Question{}); a.Granted != want || err != nil {
			t.Errorf("answer %d = %v, %v; want %v", i, a, err, want)
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
		if _, err := gate.Terminal(strings.NewReader("n\n"), &out).Ask(t.Context(), gate.Question{Detail: tt.detail}); err != nil {
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
		Agent: "0.2", Title: "one\ntwo", Purpose: "fix \x1b[31m\nit", Tool: "bash", Dir: "/w", Paths: []string{"a", "b\n"},
		Detail: "rm -rf x\nallow? y = yes \x1b[2K\r\u202eevil\xff\ttab é\n\n",
	}
	if _, err := gate.Terminal(strings.NewReader("n\n"), &out).Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := "\nagent 0.2 asks: fix \\x1b[31m\\nit (bash)\nits task: one\\ntwo\nin /w\n" +
		"  | rm -rf x\n" +
		"  | allow? y = yes \\x1b[2K\\x0d\\u202eevil\\xff\ttab é\n" +
		"agent 0.2, files: a, b\\n\n" +
		"allow? y = yes, n = no, n REASON = no, and tell the model why: "
	if out.String() != want {
		t.Errorf("shown %q, want %q", out.String(), want)
	}
}

// Below a change that is cut the question names its files, and how all of it is seen.
func TestTerminalOfALargeChange(t *testing.T) {
	var out strings.Builder
	q := gate.Question{Agent: "0.2", Tool: "delegate_task", Paths: []string{"a", "b"}, Detail: strings.Repeat("+x\n", 500)}
	if _, err := gate.Terminal(strings.NewReader("n\n"), &out).Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := "  | +x\nagent 0.2, files: a, b\nto see all of it first answer n: it is kept, and skein worktrees shows and merges it\nallow? "
	if !strings.Contains(out.String(), want) {
		t.Errorf("shown %q, want in it %q", out.String(), want)
	}
}

// A call may be allowed for the rest of the run, a change may not: there is none like it.
func TestTerminalAgain(t *testing.T) {
	for _, tt := range []struct {
		paths []string
		want  gate.Answer
		times int // the question is asked
	}{
		{nil, gate.Answer{Granted: true, Again: true}, 1},
		{[]string{"a"}, gate.Answer{Granted: true}, 2},
	} {
		var out strings.Builder
		got, err := gate.Terminal(strings.NewReader("r\ny\n"), &out).Ask(t.Context(), gate.Question{Tool: "bash", Paths: tt.paths})
		offered := strings.Contains(out.String(), "r = yes, and to exactly this again in this run") || strings.Contains(out.String(), "y, r,")
		if err != nil || got != tt.want || offered != tt.want.Again || strings.Count(out.String(), "n REASON") != tt.times {
			t.Errorf("r, then y, to a question about %q = %+v, %v, want %+v; shown %q", tt.paths, got, err, tt.want, out.String())
		}
	}
}

// A cancelled question does not take the answer of the next, and a line that was meant for it
// answers no other.
func TestTerminalCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		var out strings.Builder
		term := gate.Terminal(in, &out)
		brief := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			a, err := term.Ask(ctx, gate.Question{})
			if a.Granted {
				t.Error("a question that was cancelled was answered yes")
			}
			return err
		}
		if err := brief(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ask without an answer = %v, want ctx's error", err)
		}
		if want := "\nno answer is needed any more: context deadline exceeded\n"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("shown %q, want it to end with %q", out.String(), want)
		}
		_, _ = io.WriteString(keys, "y\n") // for the question that is gone
		synctest.Wait()
		done := make(chan bool)
		go func() { // waited for by the receive below
			a, _ := term.Ask(t.Context(), gate.Question{})
			done <- a.Granted
		}()
		synctest.Wait()
		_, _ = io.WriteString(keys, "n\n")
		if <-done {
			t.Error("a line typed before a question was shown answered it")
		}
	})
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
