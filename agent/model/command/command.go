// Package command asks a program as the model: the conversation on its standard input, the
// reply on its standard output.
//
// Standard input is text, one message after the other, each below a line that says who
// speaks, and at the end the line below which the program is to go on:
//
//	=== system
//	You can run nothing yourself …
//	=== user
//	fix the typo
//	=== assistant
//
// A line of a message that begins with === gets a space in front of it, so that no text can
// pass for another speaker. A program has no calls of its own: wrap the client with
// package text. What a program spends is unknown.
//
// Programs are started by a [Runner], which the wiring gives: this package starts none
// itself, and keeps no environment.
//
// Non-goals: a program that stays for several exchanges; request parameters.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"skein/agent/model"
)

const (
	replyTimeout = 10 * time.Minute // as for other replies that say nothing until they are whole
	replyLimit   = 64 << 20         // bytes; a longer reply is a fault of the program
	headLimit    = 4 << 10          // bytes kept of its standard error
	wordsLimit   = 500              // characters shown of it
)

// A Runner runs a program outside of any box, as its user would, with input as its standard
// input. It returns the exit code once the program and all that it started have ended;
// cancelling ctx ends them at once. An error means that the program was not started. The
// program may close its input early. A writer's error ends the program.
type Runner func(ctx context.Context, argv []string, input io.Reader, out, errOut io.Writer) (exit int, err error)

// Options tell a [Client] what to run. Argv and Run must be set.
type Options struct {
	Argv    []string // the program and its arguments; no shell reads them
	Run     Runner
	Name    string        // of the provider, for errors; default "command"
	Timeout time.Duration // of an exchange, default 10 minutes
}

// A Client asks one program. It is safe for concurrent use, if its program is.
type Client struct{ opts Options }

var _ model.Client = (*Client)(nil)

// New returns a client, or an error if the options cannot work. It runs nothing.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		o.Name = "command"
	}
	if o.Timeout <= 0 {
		o.Timeout = replyTimeout
	}
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return nil, fmt.Errorf("set up %s: no program named", o.Name)
	}
	if o.Run == nil {
		return nil, fmt.Errorf("set up %s: nothing to run programs with", o.Name)
	}
	return &Client{o}, nil
}

// Dialect implements [model.Client].
func (c *Client) Dialect() string { return "command" }

// spoken is the raw form of a message: the text that the program reads, as JSON.
type spoken string

// Encode implements [model.Client].
func (c *Client) Encode(m model.Message) (json.RawMessage, error) {
	if m.Role == model.ToolRole || len(m.Calls) > 0 {
		return nil, errors.New("a program has no calls: they have to be text")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "=== %s\n", m.Role)
	for line := range strings.Lines(m.Text) {
		if strings.HasPrefix(line, "===") {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	if !strings.HasSuffix(m.Text, "\n") {
		b.WriteByte('\n')
	}
	return json.Marshal(spoken(b.String()))
}

// EncodeTools implements [model.Client]: a program is offered no tools.
func (c *Client) EncodeTools(tools []model.Tool) (json.RawMessage, error) {
	if len(tools) > 0 {
		return nil, errors.New("a program has no calls: tools have to be described in text")
	}
	return nil, nil
}

// Exchange implements [model.Client].
func (c *Client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	input, err := c.input(req)
	if err != nil {
		return model.Reply{}, err
	}
	limited, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	out, errOut := &reply{stream: req.Stream}, &head{}
	exit, err := c.opts.Run(limited, c.opts.Argv, input, out, errOut)
	switch {
	case ctx.Err() != nil:
		return model.Reply{}, ctx.Err()
	case out.large:
		return model.Reply{}, c.fault("the reply is larger than 64 MiB", "", nil)
	case limited.Err() != nil:
		return model.Reply{}, c.fault("no whole reply within "+c.opts.Timeout.String()+errOut.words(), "", limited.Err())
	case err != nil:
		return model.Reply{}, c.fault(clean(err.Error()), "check that "+c.opts.Argv[0]+" is a program, by its path or on PATH", err)
	case exit != 0:
		return model.Reply{}, c.fault(fmt.Sprintf("%s ended with exit code %d", c.opts.Argv[0], exit)+errOut.words(), "", nil)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(out.text.String(), "\uFFFD"))
	if text == "" {
		failed := c.fault("the reply is empty"+errOut.words(), "the program's standard output has to be the reply", nil)
		failed.Again = true
		return model.Reply{}, failed
	}
	m := model.Message{Role: model.Assistant, Text: text, Dialect: c.Dialect()}
	if m.Raw, err = c.Encode(m); err != nil {
		return model.Reply{}, fmt.Errorf("encode the reply: %w", err)
	}
	return model.Reply{Message: m, Finish: model.FinishStop}, nil
}

// input is what the program reads.
func (c *Client) input(req model.Request) (io.Reader, error) {
	if len(req.Tools) > 0 {
		return nil, fmt.Errorf("ask %s: a program is offered no tools", c.opts.Name)
	}
	var b bytes.Buffer
	for i, m := range req.Messages {
		var s spoken
		if err := json.Unmarshal(m.Raw, &s); err != nil {
			return nil, fmt.Errorf("ask %s: message %d (%s) was not encoded: %w", c.opts.Name, i, m.Role, err)
		}
		b.WriteString(string(s))
	}
	b.WriteString("=== assistant\n")
	return &b, nil
}

func (c *Client) fault(words, advice string, cause error) *model.Error {
	return &model.Error{Provider: c.opts.Name, Message: words, Advice: advice, Cause: cause}
}

// A reply is standard output as it comes.
type reply struct {
	text   strings.Builder
	stream func(model.Delta)
	part   []byte // of a character that was cut between two writes
	large  bool
}

var errLarge = errors.New("too much output")

func (r *reply) Write(p []byte) (int, error) {
	if r.text.Len()+len(p) > replyLimit {
		r.large = true
		return 0, errLarge
	}
	r.text.Write(p)
	if r.stream != nil {
		r.part = append(r.part, p...)
		if n := whole(r.part); n > 0 {
			r.stream(model.Delta{Text: strings.ToValidUTF8(string(r.part[:n]), "\uFFFD")})
			r.part = r.part[:copy(r.part, r.part[n:])]
		}
	}
	return len(p), nil
}

// whole returns how much of b ends with a whole character.
func whole(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if at := len(b) - n; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// A head keeps the beginning of standard error, which mostly says what is wrong.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), headLimit-len(h.b))]...)
	return len(p), nil
}

// words is the text after a colon, or nothing.
func (h *head) words() string {
	if s := clean(string(h.b)); s != "" {
		return ": " + s
	}
	return ""
}

// clean makes a foreign text fit for a terminal: one line, bounded, no control or invisible
// formatting characters.
func clean(foreign string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.Join(strings.Fields(foreign), " ") {
		if n++; n > wordsLimit {
			return b.String() + "…"
		}
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
		}
	}
	return b.String()
}
