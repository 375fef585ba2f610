package orchestrator

import (
	"maps"
	"slices"
	"sync"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
)

// A tally gathers the run's receipt.
type tally struct {
	mu   sync.Mutex
	sums journal.RunEnded // those of the children
	busy time.Duration

	unmerged []string               // changes that are kept because nobody answered
	by       map[string]model.Usage // by model
}

func newTally() *tally { return &tally{by: map[string]model.Usage{}} }

// settled counts a child that has reported.
func (t *tally) settled(rep delegate.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sums.Children++
	switch rep.Change {
	case delegate.Merged:
		t.sums.Merged++
	case delegate.Kept, delegate.Conflict:
		t.sums.Kept++
	}
	switch stop := agent.Stop(rep.Stop); {
	case stop == agent.Completed && rep.Change != delegate.Lost:
	case stop == agent.Cancelled:
		t.sums.Cancelled++
	default:
		t.sums.Unfinished++
	}
	t.busy += rep.Elapsed
	t.usedLocked(rep.By, rep.Usage)
}

// left notes a change that is kept, under this name, because nobody answered.
func (t *tally) left(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unmerged = append(t.unmerged, name)
}

func (t *tally) usedLocked(by string, u model.Usage) {
	if sum, ok := t.by[by]; ok {
		u = sum.Plus(u)
	}
	t.by[by] = u
}

// receipt closes the run with the parent's own part.
func (r *run) receipt(parent agent.Outcome, wall time.Duration) *journal.RunEnded {
	t := r.sum
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.sums
	e.Stop, e.Cause, e.Answer, e.Unasked = string(parent.Stop), parent.Cause, parent.Text, r.unasked.Load()
	e.Seconds, e.Busy, e.Usage = wall.Seconds(), t.busy.Seconds(), model.NoUsage()
	t.usedLocked("", parent.Usage)
	cost, known := 0.0, true
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		u := t.by[name]
		e.Usage = e.Usage.Plus(u)
		if name != "" && u == model.NoUsage() {
			continue // it was never asked, so what it would cost does not matter
		}
		usd, ok := r.engine(name).Price.Cost(u)
		cost, known = cost+usd, known && ok
	}
	if known {
		e.Cost = &cost
	}
	return &e
}
