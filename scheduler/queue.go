package scheduler

import (
	"context"
	"slices"
	"sync"
)

// A queue has a fixed number of places and gives them out first come, first served.
//
// x/sync's semaphore joins and waits in one call. Here the two are apart: a stage lines up
// its jobs in request order before any of their goroutines runs.
type queue struct {
	mu    sync.Mutex // guards the fields below
	free  int        // below 0: so many places are taken beyond the number there is
	lined []ticket   // empty whenever free > 0
}

// A ticket is a position in a queue, and once it is closed, a place.
type ticket chan struct{}

func newQueue(places int) *queue { return &queue{free: places} }

// join lines up at once, without waiting. Every ticket must be waited for.
func (q *queue) join() ticket {
	t := make(ticket)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lined = append(q.lined, t)
	q.grantLocked()
	return t
}

// wait returns nil once t is a place, which the caller must leave, or ctx's error. A place
// that is there already is given even when ctx has ended.
func (q *queue) wait(ctx context.Context, t ticket) error {
	select {
	case <-t:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.lined, t)
	if i < 0 {
		return nil // granted meanwhile
	}
	q.lined = slices.Delete(q.lined, i, i+1)
	return ctx.Err()
}

// seize takes a place at once, one too many if need be: then as many must be left before
// anyone in line gets one. Only cancelling leads here.
func (q *queue) seize() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free--
}

// rejoin gives a place back and lines up before all others.
func (q *queue) rejoin() ticket {
	t := make(ticket)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.lined = slices.Insert(q.lined, 0, t)
	q.grantLocked()
	return t
}

// leave gives a place back.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.grantLocked()
}

func (q *queue) grantLocked() {
	for q.free > 0 && len(q.lined) > 0 {
		t := q.lined[0]
		q.lined = slices.Delete(q.lined, 0, 1)
		q.free--
		close(t)
	}
}
