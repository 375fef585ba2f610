package orchestrator

import (
	"sync"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
)

// A tally gathers the run's receipt.
type tally struct {
	mu       sync.Mutex
	children int
	merged   int
	kept     int
	busy     time.Duration
	usage    model.Usage
}

func newTally() *tally { return &tally{usage: model.NoUsage()} }

// settled counts a child that has reported.
func (t *tally) settled(rep delegate.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.children++
	switch rep.Change {
	case delegate.Merged:
		t.merged++
	case delegate.Kept, delegate.Conflict:
		t.kept++
	}
	t.busy += rep.Elapsed
	t.usage = t.usage.Plus(rep.Usage)
}

// receipt closes the run with the parent's own part.
func (t *tally) receipt(parent agent.Outcome, unasked bool, wall time.Duration, price *model.Price) *journal.RunEnded {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &journal.RunEnded{
		Stop: string(parent.Stop), Cause: parent.Cause, Answer: parent.Text, Unasked: unasked,
		Children: t.children, Merged: t.merged, Kept: t.kept, Usage: t.usage.Plus(parent.Usage),
		Seconds: wall.Seconds(), Busy: t.busy.Seconds(),
	}
	if usd, known := price.Cost(e.Usage); known {
		e.Cost = &usd
	}
	return e
}
