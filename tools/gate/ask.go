package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Question is what a person is asked before a call or a merge happens. Its texts may come
// from a model.
type Question struct {
	Agent   string // ordinal of who wants it
	Title   string // of its task, "" for the first agent
	Tool    string
	Purpose string   // what it is for, in a few words
	Detail  string   // the exact command, or the diff
	Dir     string   // where
	Paths   []string // files of a change; nil for a call, whose detail names them
}

// An Answer is what a person says to a question. The zero value is a no.
type Answer struct {
	Granted bool
	Again   bool   // and so is the same question for the rest of the run
	Reason  string // for a no, if one was given
}

// An Asker puts questions to a person.
type Asker interface {
	// Ask returns the answer. Nothing of the call has happened before. When ctx ends the
	// question is withdrawn. It is called for one question at a time.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Terminal returns an asker that puts plain questions, answered by y, r or n, on out and reads the answers
// from in. The end of the input is a no, and so is a line without its end.
//
// What was typed before a question was shown answers nothing. A terminal holds it where no
// read shows it without waiting, so if in is a [Keyboard] it is told to drop it.
func Terminal(in io.Reader, out io.Writer) Asker {
	keys, _ := in.(Keyboard)
	return &terminal{in: bufio.NewReader(in), keys: keys, out: out}
}

// A Keyboard is an input at which a person types.
type Keyboard interface {
	io.Reader

	// Flush drops what was typed and not yet read. It may be called while another goroutine
	// reads.
	Flush() error
}

type terminal struct {
	in      *bufio.Reader
	keys    Keyboard // what in reads, or nil
	out     io.Writer
	pending chan line // a read that a cancelled question has left behind, or nil
}

type line struct {
	text string
	err  error
}

// Ask implements [Asker].
func (t *terminal) Ask(ctx context.Context, q Question) (Answer, error) {
	_, err := io.WriteString(t.out, q.text())
	if err == nil {
		err = t.forget()
	}
	if err != nil {
		return Answer{}, fmt.Errorf("ask about %s: %w", q.Tool, err)
	}
	prompt := "allow? y = yes, r = yes, and to exactly this again in this run, n = no, n REASON = no, and tell the model why: "
	short := "y, r, n or n REASON: "
	if q.Paths != nil { // a change is never the same again
		prompt, short = strings.Replace(prompt, "r = yes, and to exactly this again in this run, ", "", 1), "y, n or n REASON: "
	}
	for {
		if _, err := io.WriteString(t.out, prompt); err != nil {
			return Answer{}, fmt.Errorf("ask about %s: %w", q.Tool, err)
		}
		l, err := t.read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				why := ""
				if !errors.Is(err, context.Canceled) { // which says no more
					why = ": " + err.Error()
				}
				_, _ = fmt.Fprintf(t.out, "\nno answer is needed any more%s\n", why) // who reads it was told of more
			}
			return Answer{}, fmt.Errorf("ask about %s: %w", q.Tool, err)
		}
		if a, ok := answer(l); ok && (q.Paths == nil || !a.Again) {
			return a, nil
		}
		prompt = short
	}
}

// answer reads a line that was typed; ok is false for one that is no answer.
func answer(line string) (a Answer, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "y", "yes":
		return Answer{Granted: true}, rest == "" // "yes, but …" is not a yes to this call
	case "r":
		return Answer{Granted: true, Again: true}, rest == ""
	case "n", "no":
		return Answer{Reason: rest}, true
	}
	return Answer{}, false
}

// forget drops what was typed before the question it would answer was shown: what the
// terminal holds, what was read with an earlier line, and the line that a cancelled question
// was waiting for.
func (t *terminal) forget() error {
	if t.keys != nil {
		if err := t.keys.Flush(); err != nil {
			return err
		}
	}
	if t.pending != nil {
		select {
		case <-t.pending:
			t.pending = nil
		default:
			return nil // in is being read by somebody else, so it holds nothing
		}
	}
	_, err := t.in.Discard(t.in.Buffered())
	return err
}

// read returns the next line, and a no at the end of the input. That of a terminal may be
// followed by more: it answers one question.
func (t *terminal) read(ctx context.Context) (string, error) {
	if t.pending == nil {
		t.pending = make(chan line, 1)
		// Nobody can wait for this goroutine once ctx has ended: the read of a terminal ends
		// only with a line or with the process. The next question takes it over.
		go func(answer chan<- line) {
			text, err := t.in.ReadString('\n')
			answer <- line{text, err}
		}(t.pending)
	}
	select {
	case l := <-t.pending:
		t.pending = nil
		switch {
		case errors.Is(l.err, io.EOF):
			_, _ = io.WriteString(t.out, "\n") // what comes next stands in a line of its own
			return "n", nil
		case l.err != nil:
			return "", l.err
		}
		return l.text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// text is the question as it is shown. What a model wrote stands behind a bar, so that no
// line of it can pass for one of ours.
func (q Question) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nagent %s asks: %s (%s)\n", oneLine(q.Agent), oneLine(q.Purpose), oneLine(q.Tool))
	if q.Title != "" {
		fmt.Fprintf(&b, "its task: %s\n", oneScreen(oneLine(q.Title)))
	}
	fmt.Fprintf(&b, "in %s\n", oneLine(q.Dir))
	lines := strings.Split(strings.TrimRight(q.Detail, "\n"), "\n")
	for i, l := range lines {
		switch left := len(lines) - mostLines; {
		case left <= 0, i < mostLines/2, i >= mostLines/2+left:
			b.WriteString("  | " + oneScreen(Visible(l)) + "\n")
		case i == mostLines/2:
			fmt.Fprintf(&b, "  … %d lines are not shown …\n", left)
		}
	}
	if len(q.Paths) > 0 { // what scrolled away is said again where the answer is typed
		fmt.Fprintf(&b, "agent %s, files: %s\n", oneLine(q.Agent), oneScreen(oneLine(strings.Join(q.Paths, ", "))))
		if len(lines) > mostLines {
			b.WriteString("to see all of it first answer n: it is kept, and skein worktrees shows and merges it\n")
		}
	}
	return b.String()
}

// What is shown of a detail at most: lines, and bytes of one line. A person reads no more,
// and of what scrolls away the question is a part.
const (
	mostLines = 200
	mostBytes = 2000
)

// oneScreen keeps the beginning and the end of a line that would fill the screen.
func oneScreen(l string) string {
	if len(l) <= mostBytes {
		return l
	}
	from, to := mostBytes/2, len(l)-mostBytes/2
	for !utf8.RuneStart(l[from]) {
		from--
	}
	for !utf8.RuneStart(l[to]) {
		to++
	}
	return fmt.Sprintf("%s\n  … %d bytes of this line are not shown …\n  | %s", l[:from], to-from, l[to:])
}

func oneLine(s string) string { return strings.ReplaceAll(Visible(s), "\n", `\n`) }
