package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"skein/cmd/internal/face"
	"skein/tools/gate"
	"skein/tools/mask"
)

// notes tells the user things that are no event of a run. It and whatever else writes to the
// same place take turns, and wait for the answer to a question.
type notes struct {
	mu     sync.Mutex
	out    io.Writer
	mask   *mask.Mask // nil masks nothing
	asking bool
	held   []byte // whole lines, for when the question is over
	lost   int    // lines that were too many to be held
}

// mostHeld bounds what is held, in bytes: a person may be away for long, and reads no more.
const mostHeld = 128 << 10

// Write implements [io.Writer]. It is given whole lines, and never waits for an answer.
func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.asking {
		return n.out.Write(p)
	}
	n.held = append(n.held, p...)
	if len(n.held) > mostHeld { // the newest half stays, so that this is rare
		cut := len(n.held) - mostHeld/2
		cut += bytes.IndexByte(n.held[cut:], '\n') + 1
		n.lost += bytes.Count(n.held[:cut], []byte("\n"))
		n.held = append([]byte(nil), n.held[cut:]...)
	}
	return len(p), nil
}

func (n *notes) say(text string) {
	if n.mask != nil {
		text = string(n.mask.Written([]byte(text)))
	}
	_, _ = fmt.Fprintln(n, "note: "+face.Line(text, 1000))
}

// urgent shows a line at once. The question that it comes into the way of waits on.
func (n *notes) urgent(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asking {
		line = "\n" + line + "\nthe question above still waits: "
	} else {
		line += "\n"
	}
	_, _ = io.WriteString(n.out, line)
}

// hold keeps lines from now on, until the function it returns shows them.
func (n *notes) hold() (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asking = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.lost > 0 {
			_, _ = fmt.Fprintf(n.out, "… %d lines are not shown …\n", n.lost)
		}
		_, _ = n.out.Write(n.held)
		n.asking, n.held, n.lost = false, nil, 0
	}
}

// quiet asks while the lines of others are held: they would break the line in which the answer
// is typed, and push the question away.
type quiet struct {
	gate.Asker
	said *notes
}

// Ask implements [gate.Asker].
func (a quiet) Ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	defer a.said.hold()()
	return a.Asker.Ask(ctx, q)
}
