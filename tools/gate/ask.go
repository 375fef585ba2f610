package gate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
)

// A Question is what a person is asked before a call or a merge happens.
type Question struct {
	Agent   string // ordinal of who wants it
	Tool    string
	Purpose string // what it is for, in a few words
	Detail  string // the exact command, or the diff
	Dir     string // where
}

// An Asker puts questions to a person.
type Asker interface {
	// Ask returns the answer, and the person's reason for a no if one was given. Nothing of
	// the call has happened before. Questions may come from several goroutines; one is put
	// at a time.
	Ask(ctx context.Context, q Question) (ok bool, reason string, err error)
}

type terminal struct {
	in    *bufio.Reader
	out   io.Writer
	lines chan string
	start sync.Once

	mu sync.Mutex // one question at a time
}

// Terminal returns an asker that puts plain y or n questions on out and reads the answers
// from in.
func Terminal(in io.Reader, out io.Writer) Asker {
	return &terminal{in: bufio.NewReader(in), out: out, lines: make(chan string)}
}

// Ask implements [Asker]. End of input is a no.
func (t *terminal) Ask(ctx context.Context, q Question) (bool, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := fmt.Fprintf(t.out, "\nagent %s asks: %s (%s)\nin %s\n%s\nallow? y = yes, n = no, n REASON = no, and tell the model why: ",
		Visible(q.Agent), Visible(q.Purpose), Visible(q.Tool), Visible(q.Dir), Visible(strings.TrimRight(q.Detail, "\n")))
	if err != nil {
		return false, "", fmt.Errorf("ask about %s: %w", q.Tool, err)
	}
	for {
		l, err := t.read(ctx)
		if err != nil {
			return false, "", fmt.Errorf("ask about %s: %w", q.Tool, err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return true, "", nil
		case "n", "no":
			return false, strings.TrimSpace(rest), nil
		}
		if _, err := fmt.Fprint(t.out, "y or n: "); err != nil {
			return false, "", fmt.Errorf("ask about %s: %w", q.Tool, err)
		}
	}
}

// read waits for a line or the end of ctx. A read of a terminal cannot be taken back, so one
// goroutine reads for the asker's whole life and ends with its input; nobody waits for it.
func (t *terminal) read(ctx context.Context) (string, error) {
	t.start.Do(func() {
		go func() { // ends with the input; the process does not outlive it
			for {
				text, err := t.in.ReadString('\n')
				if err != nil && text == "" {
					close(t.lines)
					return
				}
				t.lines <- text
			}
		}()
	})
	select {
	case text, open := <-t.lines:
		if !open {
			return "n", nil
		}
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Visible shows the control characters of a stranger's text, so that it cannot move the
// cursor or pass for something else.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) {
			return r
		}
		return '\uFFFD'
	}, s)
}
