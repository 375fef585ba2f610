package demo

import (
	"slices"
	"time"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
)

// A history is what a run's events tell of its agents.
type history struct {
	began, ended time.Time
	instruction  string
	agents       []*worker // in the order of their ordinals' first events
	merges       []string  // the children whose change was merged, in that order
	results      []result
}

// A worker is one agent of the run.
type worker struct {
	ordinal, title string
	writes         bool
	isolated       bool // it worked in a copy of its own

	queued, started, ended, settled time.Time

	stop   string
	turns  int
	usage  model.Usage
	change string
	files  []string
}

// A result is one tool call with what came of it.
type result struct {
	agent, tool, args, command, text string
	ok                               bool
}

// read makes a history of events.
func read(events []journal.Event) (*history, error) {
	h := &history{}
	calls := map[string]*journal.Call{}
	for _, e := range events {
		payload, err := e.Decode()
		if err != nil {
			return nil, err
		}
		switch d := payload.(type) {
		case *journal.RunStarted:
			h.began, h.instruction = e.Time, d.Instruction
		case *journal.AgentQueued:
			w := h.of(e.Agent)
			w.queued, w.title, w.writes = e.Time, d.Title, d.Access == string(delegate.Writing)
		case *journal.AgentStarted:
			h.of(e.Agent).started = e.Time
		case *journal.Copied:
			h.of(e.Agent).isolated = true
		case *journal.Call:
			calls[e.Agent+" "+d.ID] = d
		case *journal.Result:
			r := result{agent: e.Agent, tool: d.Tool, command: d.Command, text: d.Text, ok: d.OK}
			if c := calls[e.Agent+" "+d.ID]; c != nil {
				r.args = c.Args
			}
			h.results = append(h.results, r)
		case *journal.AgentEnded:
			w := h.of(e.Agent)
			w.ended, w.stop, w.turns, w.usage = e.Time, d.Stop, d.Turns, d.Usage
		case *journal.Settled:
			w := h.of(d.Child)
			w.settled, w.change, w.files = e.Time, d.Change, d.Files
			if d.Change == delegate.Merged {
				h.merges = append(h.merges, d.Child)
			}
		case *journal.RunEnded:
			h.ended = e.Time
		}
	}
	return h, nil
}

func (h *history) of(ordinal string) *worker {
	for _, w := range h.agents {
		if w.ordinal == ordinal {
			return w
		}
	}
	w := &worker{ordinal: ordinal}
	h.agents = append(h.agents, w)
	return w
}

// children returns the readers or the writers, in the order in which they were asked for.
func (h *history) children(writers bool) []*worker {
	var found []*worker
	for _, w := range h.agents {
		if w.title != "" && w.writes == writers {
			found = append(found, w)
		}
	}
	return found
}

// overlap is how long all of the workers were at work at the same time, and how long the one
// that worked least.
func overlap(workers []*worker) (all, shortest time.Duration) {
	if len(workers) == 0 {
		return 0, 0
	}
	first := workers[0]
	from, to := first.started, first.ended
	shortest = to.Sub(from)
	for _, w := range workers[1:] {
		if w.started.After(from) {
			from = w.started
		}
		if w.ended.Before(to) {
			to = w.ended
		}
		shortest = min(shortest, w.ended.Sub(w.started))
	}
	return max(0, to.Sub(from)), shortest
}

// finished returns the ordinals in the order in which the workers ended.
func finished(workers []*worker) []string {
	sorted := slices.SortedStableFunc(slices.Values(workers), func(a, b *worker) int { return a.ended.Compare(b.ended) })
	return ordinals(sorted)
}

func ordinals(workers []*worker) []string {
	var names []string
	for _, w := range workers {
		names = append(names, w.ordinal)
	}
	return names
}
