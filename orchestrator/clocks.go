package orchestrator

import (
	"context"
	"time"
)

// clocks are those of one agent: of its own time, and of its part of the run's. A nil one is no
// limit; the first agent has no time of its own.
type clocks struct{ own, run *clock }

// startChild starts the clocks of a child that has d for itself. Its ctx is that of the work of its
// parent. Stop must be called.
func (c clocks) startChild(ctx context.Context, d time.Duration) (_ context.Context, child clocks, stop func()) {
	part, stopPart := c.run.startPart()
	ctx, all, stopAll := startClock(ctx, own, d)
	return ctx, clocks{own: all, run: part}, func() {
		stopAll()
		stopPart()
	}
}

// startPart starts the clock of a child's part of the run's time. It is over when the work of its
// parent is, with whose context the child ends: so the child has its closing turn, and its parent
// the report, before anybody is ended.
func (c *clock) startPart() (part *clock, stop func()) {
	if c == nil {
		return nil, func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.left - time.Since(c.since)
	if !c.working {
		left = 0
	}
	part = &clock{up: c.up, after: c.after + c.closing}
	part.start(max(left, 0))
	return part, func() { part.timer.Stop() }
}

// workTime gives the context of the agent's work, from that of the agent.
func (c clocks) workTime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, doneOwn := c.own.workTime(ctx)
	ctx, doneRun := c.run.workTime(ctx)
	return ctx, func() {
		doneRun()
		doneOwn()
	}
}

// near names the limits of which four fifths are used.
func (c clocks) near() []string { return append(c.own.near(), c.run.near()...) }

// wait stops the agent's own time until the function it returns is called. The run's goes on.
func (c clocks) wait() (over func()) { return c.own.wait() }
