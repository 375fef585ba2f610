package orchestrator

import (
	"testing"
	"time"

	"skein/agent"
	"skein/agent/model"
	"skein/delegate"
)

func used(in, out int64) model.Usage {
	u := model.NoUsage()
	u.Input, u.Output = model.Tokens(in), model.Tokens(out)
	return u
}

func TestReceipt(t *testing.T) {
	cheap := &model.Price{Input: 1, CacheRead: 1, Output: 1}
	dear := &model.Price{Input: 1000, CacheRead: 1000, Output: 1000}
	for _, tt := range []struct {
		name     string
		children []delegate.Report
		want     [5]int // children, merged, kept, cancelled, unfinished
		cost     float64
		unknown  bool
		least    float64 // where the cost is unknown
	}{
		{name: "none", cost: 0.001},
		{
			name: "every end",
			children: []delegate.Report{
				{Stop: "completed", Change: delegate.Merged, Usage: used(0, 1000)},
				{Stop: "completed", Change: delegate.Conflict, Usage: used(0, 1000)},
				{Stop: "cancelled", Change: delegate.Kept, Usage: used(0, 1000)},
				{Stop: "timeout", Change: delegate.Kept, Usage: used(0, 1000)},
				{Stop: "completed", Change: delegate.Lost, Usage: used(0, 1000)},
				{Stop: "refused", Usage: model.NoUsage()},
			},
			want: [5]int{6, 1, 3, 1, 3}, cost: 0.006,
		},
		{name: "two models", children: []delegate.Report{{Stop: "completed", By: "dear", Usage: used(0, 1000)}}, want: [5]int{1}, cost: 1.001},
		{name: "a price is unknown", children: []delegate.Report{{Stop: "completed", By: "free", Usage: used(0, 1), Counted: used(0, 1)}}, want: [5]int{1}, unknown: true, least: 0.001},
		{name: "but was not needed", children: []delegate.Report{{Stop: "refused", By: "free", Usage: model.NoUsage()}}, want: [5]int{1, 0, 0, 0, 1}, cost: 0.001},
		{name: "a count is unknown", children: []delegate.Report{{Stop: "completed"}}, want: [5]int{1}, unknown: true, least: 0.001},
		{name: "one of a dear model, too", children: []delegate.Report{{Stop: "timeout", By: "dear", Counted: used(0, 1000)}}, want: [5]int{1, 0, 0, 0, 1}, unknown: true, least: 1.001},
	} {
		r := &run{sum: newTally(), engines: []*engine{
			{ChildModel: ChildModel{Price: cheap}}, {ChildModel: ChildModel{Name: "dear", Price: dear}}, {ChildModel: ChildModel{Name: "free"}},
		}}
		for _, c := range tt.children {
			c.Elapsed = time.Second
			r.sum.settled(c)
		}
		e := r.receipt(agent.Outcome{Stop: agent.Completed, Usage: used(500, 500), Counted: used(500, 500)}, 3*time.Second)
		if got := [5]int{e.Children, e.Merged, e.Kept, e.Cancelled, e.Unfinished}; got != tt.want {
			t.Errorf("%s: receipt counts %v, want %v", tt.name, got, tt.want)
		}
		if e.Seconds != 3 || e.Busy != float64(len(tt.children)) {
			t.Errorf("%s: %v s for %v s of work", tt.name, e.Seconds, e.Busy)
		}
		switch {
		case tt.unknown != (e.Cost == nil):
			t.Errorf("%s: cost = %v, want unknown: %v", tt.name, e.Cost, tt.unknown)
		case e.Cost != nil && (*e.Cost-tt.cost > 1e-9 || tt.cost-*e.Cost > 1e-9):
			t.Errorf("%s: cost = %v, want %v", tt.name, *e.Cost, tt.cost)
		case e.Cost == nil && (e.AtLeast == nil || *e.AtLeast-tt.least > 1e-9 || tt.least-*e.AtLeast > 1e-9):
			t.Errorf("%s: cost at least %v, want %v", tt.name, e.AtLeast, tt.least)
		}
	}
}
