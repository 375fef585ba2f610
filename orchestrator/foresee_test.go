package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/orchestrator"
)

// before is a run whose parent reads a file, then asks for two readers.
func before(t *testing.T, o orchestrator.Options) (queued []*journal.AgentQueued, told []string, out orchestrator.Outcome) {
	t.Helper()
	price := &model.Price{Input: 1000, CacheRead: 100, Output: 1000}
	o.Price = price
	watch := o.Watch
	o.Watch = func(e journal.Event) {
		if watch != nil {
			watch(e)
		}
		switch p, _ := e.Decode(); d := p.(type) {
		case *journal.AgentQueued:
			queued = append(queued, d)
		case *journal.Result:
			if d.Tool == delegate.Name {
				told = append(told, d.Text)
			}
		}
	}
	out, _ = play(t, func(_ context.Context, req model.Request) model.Reply {
		switch {
		case req.Origin.Agent != "0":
			return costs(says("nothing"), 100, 10)
		case req.Origin.Turn == 1:
			return costs(says("", read), 4000, 10)
		case req.Origin.Turn == 2:
			return costs(says("", look, look), 5000, 10)
		}
		return costs(says("done"), 100, 10)
	}, o)
	return queued, told, out
}

// What each child will read is said before it starts: in full mode its parent's last request is
// cached, in the others no more than what all agents share.
func TestForesee(t *testing.T) {
	for _, tt := range []struct {
		mode   delegate.Mode
		cached func(n int64) bool
	}{
		{delegate.Full, func(n int64) bool { return n == 5000 }},
		{delegate.NoTools, func(n int64) bool { return n > 0 && n < 1000 }},
		{delegate.TaskOnly, func(n int64) bool { return n > 0 && n < 1000 }},
	} {
		queued, _, _ := before(t, orchestrator.Options{Mode: tt.mode})
		if len(queued) != 2 {
			t.Fatalf("%s: %d children were queued, want 2", tt.mode, len(queued))
		}
		for _, q := range queued {
			if !q.Cached.Known || !tt.cached(q.Cached.N) || !q.New.Known || q.New.N < 100 || q.New.N > 1000 {
				t.Errorf("%s: expected to read %v cached and %v new", tt.mode, q.Cached, q.New)
			}
		}
	}
}

// Above the limit a person is asked once for all children of a reply. After a no, or with nobody
// to ask, none starts, and each call is told the size and why. What the provider counted is for
// people: the model is told the same whatever that is.
func TestConfirmUSD(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limit   float64
		asker   *answers
		asked   int
		started int
		why     string
		unasked bool
	}{
		{name: "off", limit: 0, asker: &answers{}, started: 2},
		{name: "below the limit", limit: 3, asker: &answers{}, started: 2},
		{name: "yes", limit: 0.5, asker: &answers{yes: true}, asked: 1, started: 2},
		{name: "no", limit: 0.5, asker: &answers{}, asked: 1, why: "the user said no"},
		{name: "nobody", limit: 0.5, why: "nobody could be asked", unasked: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := orchestrator.Options{Mode: delegate.Full, Limits: orchestrator.Limits{ConfirmUSD: tt.limit}}
			if tt.asker != nil {
				o.Asker = tt.asker
			}
			var ended *journal.RunEnded
			o.Watch = func(e journal.Event) {
				if p, _ := e.Decode(); e.Kind == "run-ended" {
					ended, _ = p.(*journal.RunEnded)
				}
			}
			queued, told, out := before(t, o)
			if len(queued) != tt.started || out.Stop != agent.Completed || out.Unasked != tt.unasked || len(told) != 2 || ended.Children != tt.started {
				t.Fatalf("%d children were queued and %d counted, %d calls answered, the run is %+v; want %d children", len(queued), ended.Children, len(told), out, tt.started)
			}
			for _, text := range told {
				if refused := strings.Contains(text, "delegate_task refused: the first requests of 2 subagents, about "); refused != (tt.why != "") || !strings.Contains(text, tt.why) {
					t.Errorf("a call is told %q, want why: %q", text, tt.why)
				}
			}
			if tt.asker == nil {
				return
			}
			if len(tt.asker.asked) != tt.asked {
				t.Fatalf("asked %d times, want %d", len(tt.asker.asked), tt.asked)
			}
			for _, q := range tt.asker.asked {
				if q.Agent != "0" || !strings.Contains(q.Purpose, "start 2 subagents: their first requests read about ") || !strings.Contains(q.Purpose, "10000 of them cached, for $1.") || strings.Count(q.Detail, "\n") != 1 || !strings.HasPrefix(q.Detail, "0.1 look: about ") {
					t.Errorf("asked %+v", q)
				}
			}
		})
	}
}

// What a refusal tells the model follows from the conversation, not from what the provider counted.
func TestRefusalHoldsNoFigureOfTheProvider(t *testing.T) {
	var told []string
	for _, counted := range []int64{5000, 6000} {
		_, _ = play(t, func(_ context.Context, req model.Request) model.Reply {
			if last := req.Messages[len(req.Messages)-1]; last.Role == model.ToolRole {
				told = append(told, last.Text)
				return costs(says("done"), 100, 10)
			}
			return costs(says("", look), counted, 10)
		}, orchestrator.Options{Mode: delegate.Full, Limits: orchestrator.Limits{ConfirmUSD: 0.01}, Price: &model.Price{Input: 1000, CacheRead: 1000, Output: 1000}})
	}
	if len(told) != 2 || told[0] != told[1] || !strings.Contains(told[0], "refused: the first requests of 1 subagent, about ") {
		t.Errorf("told %q, want the same refusal twice", told)
	}
}

// Children that were not started take no ordinals, nor places of --max-children.
func TestRefusedChildrenLeaveNoTrace(t *testing.T) {
	asker := &answers{}
	price := &model.Price{Input: 1000, CacheRead: 1000, Output: 1000}
	var names []string
	_, _ = play(t, func(_ context.Context, req model.Request) model.Reply {
		switch {
		case req.Origin.Agent != "0":
			names = append(names, req.Origin.Agent)
			return costs(says("nothing"), 100, 10)
		case req.Origin.Turn == 1: // the last of them is one too many
			return costs(says("", look, look, look), 1000, 10)
		case req.Origin.Turn == 2:
			asker.yes = true
			return costs(says("", look, look), 1000, 10)
		}
		return costs(says(fmt.Sprint(len(asker.asked))), 100, 10)
	}, orchestrator.Options{Limits: orchestrator.Limits{ConfirmUSD: 0.01, MaxChildren: 2, Jobs: 1}, Price: price, Asker: asker})
	if got := strings.Join(names, " "); got != "0.1 0.2" || len(asker.asked) != 2 {
		t.Errorf("%s worked after %d questions, want 0.1 0.2 after 2", got, len(asker.asked))
	}
}
