// Package pace limits how many exchanges with a model are under way at once, and finds the limit:
// a server that says too many requests (429) gets half as many, and one more for every round that
// it answers while others wait.
//
// It is a client around a client, inside of the one that tries again: while an attempt waits for
// the next, somebody else has its place.
package pace

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"skein/agent/model"
)

// Client returns a client that asks c, first come, first served: for so many callers at once to
// begin with, and never for more than most. Less than one is one.
func Client(c model.Client, first, most int) model.Client {
	most = max(most, 1)
	return &client{Client: c, most: most, limit: min(max(first, 1), most)}
}

// A client encodes as the one it wraps.
type client struct {
	model.Client
	most int

	mu    sync.Mutex // guards the fields below
	limit int        // places there are now, from 1 to most
	busy  int        // places taken; more than limit after it was lowered
	good  int        // exchanges that succeeded since the limit changed
	burst int        // how often it was lowered
	lined []chan struct{}
}

// Exchange implements [model.Client]. Waiting for a place ends with ctx.
func (c *client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	burst, err := c.enter(ctx)
	if err != nil {
		return model.Reply{}, err
	}
	result := failed
	defer func() { c.leave(result, burst) }() // a panic gives the place back, too
	reply, err := c.Client.Exchange(ctx, req)
	if refused := (*model.Error)(nil); err == nil {
		result = succeeded
	} else if errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests {
		result = tooMany
	}
	return reply, err
}

// outcome is what an exchange says of the limit.
type outcome int

const (
	failed outcome = iota // nothing
	succeeded
	tooMany
)

// enter waits for a place. It tells how often the limit had been lowered by then.
func (c *client) enter(ctx context.Context) (burst int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	place := make(chan struct{})
	c.mu.Lock()
	c.lined = append(c.lined, place)
	c.grantLocked()
	c.mu.Unlock()
	select {
	case <-place:
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.lined, place); i >= 0 {
			c.lined = slices.Delete(c.lined, i, i+1)
			return 0, ctx.Err()
		}
		return c.burst, nil // it was granted meanwhile: the exchange sees that ctx has ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.burst, nil
}

// leave gives a place back and learns from what the exchange came to.
func (c *client) leave(o outcome, burst int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	switch {
	case o == tooMany && burst == c.burst: // of those that were under way together the first counts
		c.limit = max(c.limit/2, 1)
		c.burst, c.good = c.burst+1, 0
	case o == succeeded && c.limit < c.most && len(c.lined) > 0: // what nobody waited for proves nothing
		if c.good++; c.good >= c.limit {
			c.limit, c.good = c.limit+1, 0
		}
	}
	c.grantLocked()
}

func (c *client) grantLocked() {
	for c.busy < c.limit && len(c.lined) > 0 {
		place := c.lined[0]
		c.lined = slices.Delete(c.lined, 0, 1)
		c.busy++
		close(place)
	}
}
