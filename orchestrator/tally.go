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

	unmerged []string         // changes that are kept because nobody answered
	by       map[string]taken // by model
}

// taken is what calls took, and the part of it that is known.
type taken struct{ usage, counted model.Usage }

func newTally() *tally { return &tally{by: map[string]taken{}} }

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
	t.usedLocked(rep.By, taken{rep.Usage, rep.Counted})
}

// left notes a change that is kept, under this name, because nobody answered.
func (t *tally) left(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unmerged = append(t.unmerged, name)
}

func (t *tally) usedLocked(by string, u taken) {
	if u.counted == (model.Usage{}) {
		u.counted = model.NoUsage() // an agent that ended before it could count
	}
	if sum, ok := t.by[by]; ok {
		u = taken{sum.usage.Plus(u.usage), sum.counted.Plus(u.counted)}
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
	e.Counted = model.NoUsage()
	t.usedLocked("", taken{parent.Usage, parent.Counted})
	cost, least, known := 0.0, 0.0, true
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		u := t.by[name]
		e.Usage, e.Counted = e.Usage.Plus(u.usage), e.Counted.Plus(u.counted)
		if name != "" && u.usage == model.NoUsage() {
			continue // it was never asked, so what it would cost does not matter
		}
		price := r.engine(name).Price
		usd, ok := price.Cost(u.usage)
		cost, known = cost+usd, known && ok
		part, _ := price.Cost(u.counted)
		least += part
	}
	if known {
		e.Cost = &cost
	}
	if least > 0 {
		e.AtLeast = &least
	}
	return &e
}
