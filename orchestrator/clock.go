package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"skein/agent"
)

// A clock ends contexts when an agent's time is used up: that of its work a little before that
// of the agent, which has the time between for its closing turn. It stands still while the agent
// waits for a person or for children of its own: that time is not the agent's.
type clock struct {
	up      timeUp
	closing time.Duration // what the closing turn has
	after   time.Duration // of the limit, for others: behind a child's end comes its parent's work

	mu      sync.Mutex
	left    time.Duration // until the next end
	since   time.Time     // when it last began to run
	waiting int           // for how many things the agent waits
	timer   *time.Timer
	working bool // the work has not ended
	work    context.CancelCauseFunc
	end     context.CancelCauseFunc // nil: that is somebody else's to do
}

// closingTime is what a closing turn gets at most; it is a tenth of shorter limits.
const closingTime = 30 * time.Second

// timeUp is the cause of a context whose time is used up.
type timeUp struct {
	whose string // own or runs
	limit time.Duration
}

func (e *timeUp) Error() string { return fmt.Sprintf("stopped at %s limit of %v", e.whose, e.limit) }

// Unwrap makes it an [agent.ErrTimeout].
func (e *timeUp) Unwrap() error { return agent.ErrTimeout }

// startClock returns a context that ends with an [agent.ErrTimeout] after d of an agent's own
// time, or of the run's, which never stands still. Stop must be called.
func startClock(ctx context.Context, whose string, d time.Duration) (_ context.Context, c *clock, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c = &clock{up: timeUp{whose, d}, end: cancel}
	c.start(d)
	return ctx, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
}

// start gives the clock d to run.
func (c *clock) start(d time.Duration) {
	c.mu.Lock() // it may ring before the timer is known
	defer c.mu.Unlock()
	c.closing = min(d/10, closingTime)
	c.left, c.since, c.working = d-c.closing, time.Now(), true
	c.timer = time.AfterFunc(c.left, c.ring)
}

// workTime gives the context of the agent's work, from that of the agent. A nil clock has no
// time to end.
func (c *clock) workTime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.work = cancel; !c.working {
			cancel(&c.up)
		}
	}
	return ctx, func() { cancel(nil) }
}

// ring ends the work, then the agent.
func (c *clock) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.working {
		c.left = 0
		c.end(&c.up)
		return
	}
	if c.working = false; c.work != nil {
		c.work(&c.up)
	}
	c.left = c.closing
	if c.waiting == 0 {
		c.since = time.Now()
		if c.end != nil {
			c.timer.Reset(c.left)
		}
	}
}

// near names the limit if four fifths of the time are used.
func (c *clock) near() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.left
	if c.waiting == 0 {
		left -= time.Since(c.since)
	}
	if c.working {
		left += c.closing
	}
	if float64(left+c.after) > (1-warnedAt)*float64(c.up.limit) {
		return nil
	}
	return []string{fmt.Sprintf("%s time of %v", yours(c.up.whose), c.up.limit)}
}

// wait stops the clock until the function it returns is called. A nil clock has no time to
// stop.
func (c *clock) wait() (over func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return c.goOn
}

func (c *clock) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.since = time.Now()
		c.timer.Reset(c.left) // at once if it was stopped when it should have rung already
	}
}
