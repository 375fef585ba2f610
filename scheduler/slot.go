package scheduler

import (
	"context"
	"sync"
	"sync/atomic"
)

// A slot is the right of one worker to work: a place in the scheduler's queue. Its ctx
// carries it, so that a batch deep below can give the place back and get it again without
// anyone in between knowing.
type slot struct {
	places *queue

	mu     sync.Mutex // guards the fields below
	lent   int        // stages under way that use slots; the place is held when there are none
	seized bool       // when it was taken back nobody had handed it over
}

// A slotKey finds the slot of one scheduler in a ctx; slots of others are not its own.
type slotKey struct{ s *Scheduler }

// lend gives the place back for the time of a stage; takeBack ends that time. A worker's
// Run may well have several batches under way at once.
func (sl *slot) lend() {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.lent++; sl.lent == 1 {
		sl.places.leave()
		sl.seized = false
	}
}

// regain gives a place that was seized back and waits, before all others, for one that is free.
// Without success it is as before.
func (sl *slot) regain(ctx context.Context) error {
	sl.mu.Lock()
	seized := sl.seized
	sl.seized = false
	sl.mu.Unlock()
	if !seized {
		return nil
	}
	err := sl.places.wait(ctx, sl.places.rejoin())
	if err != nil {
		sl.places.seize()
		sl.mu.Lock()
		defer sl.mu.Unlock()
		sl.seized = true
	}
	return err
}

// takeBack makes the place held again. With handed set it is one that the caller holds and
// hands over, and nobody in line can come in between. Without (all of the stage's workers
// were cancelled before they started) it is seized: making the slot's worker wait for
// other people's work would keep it from ending.
func (sl *slot) takeBack(handed bool) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	sl.lent--
	switch held := sl.lent == 0; {
	case held && !handed:
		sl.places.seize()
		sl.seized = true
	case !held && handed:
		sl.places.leave()
	}
}

// giveBack leaves a place that was seized, and reports whether it was: it may be one too many,
// which nobody is handed.
func (sl *slot) giveBack() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.seized {
		sl.places.leave()
	}
	return sl.seized
}

// A loan is the time of one stage in which its caller's slot is lent to its workers.
type loan struct {
	places  *queue
	lender  *slot        // nil: the caller has no slot
	working atomic.Int64 // workers that have not ended, queued ones included
}

// lend begins the loan of a stage with these jobs.
func (s *Scheduler) lend(ctx context.Context, jobs []Job) *loan {
	l := &loan{places: s.slots}
	l.lender, _ = ctx.Value(slotKey{s}).(*slot)
	for _, j := range jobs {
		if j.Slot {
			l.working.Add(1)
		}
	}
	if l.lender != nil && l.working.Load() > 0 {
		l.lender.lend()
	}
	return l
}

// ended is called once for each worker, when it has ended, and tells whether it leaves a
// place behind. The last one ends the loan.
func (l *loan) ended(place bool) {
	last := l.working.Add(-1) == 0
	switch {
	case last && l.lender != nil:
		l.lender.takeBack(place)
	case place:
		l.places.leave()
	}
}
