package wire

import (
	"context"
	"errors"
	"io"
	"time"
)

// Limits are how long a client waits. Zero fields have the defaults named beside them.
type Limits struct {
	Connect   time.Duration // 10 s, for the connection and for its encryption each
	FirstByte time.Duration // 120 s, until a stream's first byte: a long prompt is read first
	Idle      time.Duration // 60 s, between two pieces of a stream
	Whole     time.Duration // 10 min, for a reply that is not streamed: it says nothing until it is whole
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&l.Connect, 10*time.Second)
	set(&l.FirstByte, 120*time.Second)
	set(&l.Idle, 60*time.Second)
	set(&l.Whole, 10*time.Minute)
	return l
}

// drainTime is how long the end of an answer may take to come after all that counts was
// read. A connection whose answer was read to its end can be used again.
const drainTime = 50 * time.Millisecond

// refusalTime is how long the body of a refusal may take: what came of it by then is shown.
const refusalTime = time.Second

// A limitError tells which time limit ended an exchange.
type limitError struct {
	what  string
	limit time.Duration
}

func (e *limitError) Error() string { return e.what + " within " + e.limit.String() }

// A watch ends an exchange that takes too long, by cancelling its context. The reader of
// the answer is the only one who moves the limit.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

func (l Limits) watch(ctx context.Context, stream bool) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{cancel: cancel}
	if stream {
		w.idle = l.Idle
		w.set(&limitError{"the reply did not begin", l.FirstByte})
	} else {
		w.set(&limitError{"no whole reply", l.Whole})
	}
	return ctx, w
}

func (w *watch) set(limit *limitError) {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.timer = time.AfterFunc(limit.limit, func() { w.cancel(limit) })
}

// stop ends the watch, and whatever still uses its context.
func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// body watches the reading of an answer and holds it to the limit in size.
func (w *watch) body(r io.Reader) *watched { return &watched{r: r, watch: w, left: replyLimit} }

// drain reads what is left of an answer that is complete already.
func (w *watch) drain(body *watched) {
	w.idle = 0
	w.set(&limitError{"no end of the reply", drainTime})
	_, _ = io.Copy(io.Discard, body) // at worst the connection is not used again
}

var errTooLarge = errors.New("the reply is larger than 64 MiB")

type watched struct {
	r     io.Reader
	watch *watch
	left  int
	begun bool
}

// Read implements [io.Reader].
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	if w := b.watch; n > 0 && w.idle > 0 {
		if b.begun {
			w.timer.Reset(w.idle)
		} else {
			b.begun = true
			w.set(&limitError{"the reply did not go on", w.idle})
		}
	}
	return n, err
}
