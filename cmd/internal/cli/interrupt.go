package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// interruptible returns a context that a signal cancels, so that everything ends in order; a
// second one ends the process at once. During a run Ctrl-C goes step by step, see
// [interrupts.press]. A terminal that closes is a signal to end. A reader of our output that
// went away is none: writing fails from then on, and the work is brought to its end. Call stop
// when the work is over.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	i := &interrupts{cancel: cancel, exit: os.Exit, say: func(line string) { _, _ = fmt.Fprintln(os.Stderr, line) }}
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Heard and dropped, not ignored: programs that we start would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { // stop waits for it
		for {
			select {
			case <-over:
				return
			case s := <-signals:
				i.press(s, time.Now())
			}
		}
	})
	return context.WithValue(ctx, interruptsKey{}, i), func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(over)
		wait.Wait()
		cancel()
	}
}

type interruptsKey struct{}

// ofRun has interrupts go step by step from now on: the first one calls endChildren, which tells
// how many subagents it ends. What is done is told by say, a line at a time. The function it
// returns is called when the run is over.
func ofRun(ctx context.Context, say func(line string), endChildren func() int) (over func()) {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return func() {} // nobody listens to signals
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.say
	i.endChildren, i.say = endChildren, say
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.endChildren, i.say = nil, before
	}
}

// interrupts is what became of the signals so far.
type interrupts struct {
	cancel context.CancelFunc
	exit   func(code int)

	mu          sync.Mutex
	say         func(line string)
	endChildren func() int // nil outside of a run
	pressed     []time.Time
	stopping    bool // the context is cancelled
	told        bool // to end, by another signal than Ctrl-C in a run
}

// patience is the time in which three interrupts mean that nobody wants to wait for an order.
const patience = 2 * time.Second

// press says what a signal does, and what the next one will, and does it. Ctrl-C ends the
// subagents of a run; if there are none, or the second time, the run; and the third time within
// two seconds, the process.
func (i *interrupts) press(s os.Signal, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s != os.Interrupt || i.endChildren == nil {
		switch {
		case i.told, i.stopping && s == os.Interrupt:
			i.leave()
		case i.stopping: // by Ctrl-C: whoever sends this has not been heard yet
			i.say("the run is ending; once more to leave at once")
		default:
			i.stop("stopping; once more to leave at once")
		}
		i.told = true
		return
	}
	i.pressed = append(i.pressed, now)
	n := len(i.pressed)
	if n >= 3 && now.Sub(i.pressed[n-3]) <= patience {
		i.leave()
		return
	}
	const leave = "Ctrl-C three times within 2 s leaves at once"
	switch {
	case i.stopping:
		i.say("the run is ending; " + leave)
		return
	case n == 1:
		if ended := i.endChildren(); ended > 0 {
			i.say(fmt.Sprintf("ending %s, their reports are used as they are; Ctrl-C once more ends the run", subagents(ended)))
			return
		}
	}
	i.stop("ending the run; " + leave)
}

func (i *interrupts) stop(text string) {
	i.say(text)
	i.stopping = true
	i.cancel()
}

// leave ends the process without waiting for anything.
func (i *interrupts) leave() {
	line := "left at once"
	if i.endChildren != nil {
		line += "; skein worktrees list shows what subagents changed that was not merged"
	}
	i.say(line)
	i.exit(exitInterrupted)
}

func subagents(n int) string {
	if n == 1 {
		return "1 subagent"
	}
	return fmt.Sprintf("%d subagents", n)
}
