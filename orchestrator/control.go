package orchestrator

import (
	"context"
	"maps"
	"slices"
	"sync"

	"skein/agent"
)

// A Control reaches into a run while it goes on: for whoever interrupts it, or shows its agents.
// The zero value is ready and serves one run. Any goroutine may call its methods at any time;
// before the run and after it there are no children.
type Control struct {
	mu       sync.Mutex
	children map[string]*held // by ordinal: those that have not ended, queued ones among them
	endings  int              // how often all of them were ended
}

// A held child can be ended.
type held struct {
	ended  bool
	cancel context.CancelCauseFunc // nil while it waits for its slot
}

func (h *held) end() {
	h.ended = true
	if h.cancel != nil {
		h.cancel(&agent.End{Stop: agent.Cancelled, Cause: "the user ended it"})
	}
}

// Children lists the ordinals of the children, at any depth, that work or wait for a slot.
func (c *Control) Children() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.children))
}

// EndChildren ends all children and returns how many there were. Each ends cancelled: what it
// changed is kept, and its parent gets its report and goes on. The first agent stays, and may ask
// for others.
func (c *Control) EndChildren() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endings++
	for _, h := range c.children {
		h.end()
	}
	return len(c.children)
}

// End ends one child, and with it the children of its own. It reports whether there is one of
// that ordinal. Its siblings stay.
func (c *Control) End(ordinal string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.children[ordinal]
	if ok {
		h.end()
	}
	return ok
}

// ended is how often all children were ended. Who grows children without being asked to does not
// go on with it once that has changed.
func (c *Control) ended() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endings
}

// queue takes note of a child that was asked for.
func (c *Control) queue(ordinal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdLocked(ordinal)
}

func (c *Control) holdLocked(ordinal string) *held {
	if c.children == nil {
		c.children = map[string]*held{}
	}
	if c.children[ordinal] == nil {
		c.children[ordinal] = &held{}
	}
	return c.children[ordinal]
}

// start gives a child that has its slot a context that [Control.End] ends. The function it
// returns ends it, too, for the cause that it is given.
func (c *Control) start(ctx context.Context, ordinal string) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holdLocked(ordinal)
	if h.cancel = cancel; h.ended {
		h.end()
	}
	return ctx, cancel
}

// over forgets a child that has ended.
func (c *Control) over(ordinal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.children, ordinal)
}
