package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"skein/scheduler"
)

// A plan is a random job: what it does in Run, batches of its own included.
type plan struct {
	effect      scheduler.Effect
	slot        bool
	takes       time.Duration // before its batches, and again after each
	end, settle ending
	batches     []batchPlan
}

// A batchPlan is a random batch; after limit (if not 0) its ctx ends.
type batchPlan struct {
	limit time.Duration
	jobs  []plan
}

// limited reports whether the ctx of b, or of a batch below it, may end.
func (b batchPlan) limited() bool {
	return b.limit > 0 || slices.ContainsFunc(b.jobs, func(p plan) bool {
		return slices.ContainsFunc(p.batches, batchPlan.limited)
	})
}

type ending int

const (
	succeeds ending = iota
	fails
	panics
)

var (
	errPlanned = errors.New("planned")
	endings    = rapid.SampledFrom([]ending{succeeds, succeeds, succeeds, fails, panics})
	durations  = rapid.Map(rapid.IntRange(0, 3), func(n int) time.Duration { return time.Duration(n) * time.Second })
)

func (e ending) now() error {
	switch e {
	case fails:
		return errPlanned
	case panics:
		panic(errPlanned)
	}
	return nil
}

func drawBatch(t *rapid.T, depth int, limits bool) batchPlan {
	b := batchPlan{}
	if limits {
		b.limit = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 3 * time.Second}).Draw(t, "limit")
	}
	for range rapid.IntRange(0, 2+2*depth).Draw(t, "jobs") {
		p := plan{
			effect: rapid.SampledFrom([]scheduler.Effect{scheduler.Execute, scheduler.Write, scheduler.Read, scheduler.Isolated}).Draw(t, "effect"),
			slot:   rapid.Bool().Draw(t, "slot"),
			takes:  durations.Draw(t, "takes"),
			end:    endings.Draw(t, "end"),
			settle: endings.Draw(t, "settle"),
		}
		if depth > 1 {
			for range rapid.IntRange(0, 2).Draw(t, "batches") {
				p.batches = append(p.batches, drawBatch(t, depth-1, limits))
			}
		}
		b.jobs = append(b.jobs, p)
	}
	return b
}

// A watch carries plans out and looks on. It keeps its own books of what may be, so that
// it does not believe the scheduler.
type watch struct {
	s     *scheduler.Scheduler
	slots int
	reads int

	mu      sync.Mutex // guards all below, and the seen of every batch
	working int        // workers that are not inside a batch of their own
	owed    int        // of them, those who came back from a cancelled batch: may be too many
	faults  []string
}

func (w *watch) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// work lets time pass as a worker with a slot, or as a job without. One who came back from
// a cancelled batch took its slot at once, or got it from one who did, and may be one too
// many.
func (w *watch) work(slot, cancelled bool, d time.Duration) {
	if slot {
		w.change(+1, cancelled)
		defer w.change(-1, cancelled)
	}
	time.Sleep(d)
}

func (w *watch) change(by int, cancelled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancelled {
		w.owed += by
	}
	if w.working += by; w.working > w.slots+w.owed {
		w.fault("%d workers at once, want at most %d", w.working, w.slots)
	}
}

// seen is what has happened to one job.
type seen struct {
	began, ended, settled bool
	at                    time.Time // began
	err                   error     // what Run or Settle planned
}

// batch carries out b for a worker's Run (slot) or for one without.
func (w *watch) batch(ctx context.Context, b batchPlan) {
	if b.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.limit)
		defer cancel()
	}
	jobs, saw := make([]scheduler.Job, len(b.jobs)), make([]seen, len(b.jobs))
	for i, p := range b.jobs {
		jobs[i] = scheduler.Job{
			Effect: p.effect,
			Slot:   p.slot,
			Run:    func(ctx context.Context) error { return w.run(ctx, b.jobs, saw, i) },
			Settle: func(context.Context) error { return w.settle(b.jobs, saw, i) },
		}
	}
	errs := w.s.Do(ctx, jobs)

	w.mu.Lock()
	defer w.mu.Unlock()
	for i, err := range errs {
		switch got := saw[i]; {
		case !got.began:
			if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
				w.fault("error of a job that never began = %v, ctx %v", err, ctx.Err())
			}
		case !got.ended || got.err == nil && !got.settled:
			w.fault("Do returned before job %d was done: %+v", i, got)
		case !errors.Is(err, got.err) || err != nil && got.err == nil:
			w.fault("error of job %d = %v, want %v", i, err, got.err)
		}
	}
}

func (w *watch) run(ctx context.Context, plans []plan, saw []seen, i int) error {
	p := plans[i]
	w.begin(ctx, plans, saw, i)
	w.work(p.slot, false, p.takes)
	cancelled := false
	for _, b := range p.batches {
		w.batch(ctx, b)
		cancelled = cancelled || ctx.Err() != nil || b.limited()
		w.work(p.slot, cancelled, p.takes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	saw[i].ended = true
	if p.end != succeeds {
		saw[i].err = errPlanned
	}
	return p.end.now()
}

// begin checks all that must have happened, and must not, before job i may start.
func (w *watch) begin(ctx context.Context, plans []plan, saw []seen, i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, last := stageOf(plans, i)
	if saw[i].began {
		w.fault("job %d began twice", i)
	}
	saw[i].began, saw[i].at = true, time.Now()
	reading := 0
	for j, other := range saw {
		switch {
		case j < first && other.began && (!other.ended || other.err == nil && !other.settled):
			w.fault("job %d began before %d of an earlier stage was done", i, j)
		case j < first && !other.began && ctx.Err() == nil:
			w.fault("job %d began and %d of an earlier stage never did", i, j)
		case j > last && other.began:
			w.fault("job %d began after %d of a later stage", i, j)
		case j >= first && j <= last && other.began && !other.ended && !plans[j].slot:
			reading++
		}
		if inOrder := other.at.Before(saw[i].at) == (j < i) || other.at.Equal(saw[i].at); j >= first && j <= last && j != i &&
			other.began && plans[j].slot == plans[i].slot && !inOrder {
			w.fault("job %d began at %v, %d at %v", i, saw[i].at, j, other.at)
		}
	}
	if reading > w.reads {
		w.fault("%d jobs without a slot at once, want at most %d", reading, w.reads)
	}
}

func (w *watch) settle(plans []plan, saw []seen, i int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, last := stageOf(plans, i)
	if !saw[i].ended || saw[i].err != nil || saw[i].settled {
		w.fault("job %d settled, but %+v", i, saw[i])
	}
	for j := first; j <= last; j++ {
		if saw[j].began && !saw[j].ended {
			w.fault("job %d settled while %d runs", i, j)
		}
		if j > i && saw[j].settled {
			w.fault("job %d settled after %d", i, j)
		}
	}
	saw[i].settled = true
	if plans[i].settle != succeeds {
		saw[i].err = errPlanned
	}
	return plans[i].settle.now()
}

// stageOf returns the first and the last job of the stage that job i belongs to.
func stageOf(plans []plan, i int) (first, last int) {
	together := func(j int) bool {
		return j >= 0 && j < len(plans) && (plans[j].effect == scheduler.Read || plans[j].effect == scheduler.Isolated)
	}
	first, last = i, i
	for together(i) && together(first-1) {
		first--
	}
	for together(i) && together(last+1) {
		last++
	}
	return first, last
}

// Whatever the batch: stages one after the other, each settled in request order when all
// of it has ended; never more workers than slots; no deadlock (synctest reports those) and
// no slot lost.
func TestDoOfAnyBatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &watch{slots: rapid.IntRange(1, 3).Draw(rt, "slots"), reads: rapid.IntRange(1, 3).Draw(rt, "reads")}
		w.s = scheduler.New(scheduler.Options{Slots: w.slots, Reads: w.reads})
		root := drawBatch(rt, 3, rapid.Bool().Draw(rt, "limits"))
		held := rapid.Bool().Draw(rt, "held")
		synctest.Test(t, func(t *testing.T) {
			if !held {
				w.batch(t.Context(), root)
			} else if err := w.s.Hold(t.Context(), func(ctx context.Context) error { w.batch(ctx, root); return nil }); err != nil {
				w.fault("Hold = %v, want nil", err)
			}
			start := time.Now()
			second := scheduler.Job{Effect: scheduler.Read, Slot: true, Run: func(context.Context) error { time.Sleep(time.Second); return nil }}
			w.s.Do(t.Context(), []scheduler.Job{second, second, second, second, second, second}[:2*w.slots])
			if got := time.Since(start); got != 2*time.Second {
				w.fault("twice as many jobs as slots took %v in the end, want 2s: a slot was lost or won", got)
			}
		})
		for _, f := range w.faults {
			rt.Error(f)
		}
	})
}
