package orchestrator

import (
	"context"
	"sync"
	"time"

	"skein/agent"
)

// A clock ends a context when an agent's time is used up. It stands still while the agent
// waits for a person or for children of its own: that time is not the agent's.
type clock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time // when it last began to run
	waiting int       // for how many things the agent waits
	timer   *time.Timer
}

// startClock returns a context that ends with [agent.ErrTimeout] after d of the agent's own
// time. Stop must be called.
func startClock(ctx context.Context, d time.Duration) (_ context.Context, c *clock, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c = &clock{left: d, since: time.Now()}
	c.timer = time.AfterFunc(d, func() { cancel(agent.ErrTimeout) })
	return ctx, c, func() {
		c.timer.Stop()
		cancel(nil)
	}
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
	if c.waiting--; c.waiting == 0 && c.left > 0 {
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}
