// Package scheduler runs the jobs of a batch at the same time where their effects allow
// it, and settles them in the order in which they were asked for.
//
// A batch is cut into stages: adjacent jobs that share ([Effect.Shared]) form one, every
// other job is a stage of its own. The jobs of a stage run together; when all have ended
// they are settled one by one, and only then does the next stage begin.
//
// Workers (jobs with Slot set) share a fixed number of slots, however deep their batches
// are nested. A worker that waits for workers of its own does not hold a slot meanwhile,
// so nesting cannot deadlock.
//
// Non-goals: knowing what a job is for; retries; priorities.
package scheduler

import (
	"context"

	"github.com/sourcegraph/conc/pool"
)

// Options configures [New]. The zero value works.
type Options struct {
	Slots int // workers at once, over all batches; 0 means 8
	Reads int // jobs without Slot at once, in one stage; 0 means 16
}

// A Scheduler shares its slots among all batches given to it. Its methods may be called
// at the same time.
type Scheduler struct {
	slots *queue
	reads int
}

// New returns a scheduler whose slots are all free.
func New(o Options) *Scheduler {
	if o.Slots <= 0 {
		o.Slots = 8
	}
	if o.Reads <= 0 {
		o.Reads = 16
	}
	return &Scheduler{slots: newQueue(o.Slots), reads: o.Reads}
}

// Hold runs fn as a worker: it waits for a slot, calls fn with a ctx that carries it, and
// gives it back. It returns fn's error, a [*PanicError], or ctx's error if ctx ended
// before there was a slot. It is a batch of one: a slot that ctx carries already is given
// back meanwhile.
func (s *Scheduler) Hold(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.Do(ctx, []Job{{Slot: true, Run: fn}})[0]
}

// Do carries out a batch and returns when everything in it has ended: one error per job,
// in request order, nil for jobs that ran and settled.
//
// Jobs of a stage start in request order, as soon as there is room. A failing or
// panicking job never stops its siblings. When ctx ends, jobs that have not started get
// its error; those that have are waited for and, if they succeed, still settled.
//
// A slot that ctx carries is given back while jobs of a stage use slots of their own. The
// last of them to end hands its slot over, so the caller goes on before any queued job. If
// they were all cancelled before they had one, the caller does not wait either: there is
// one worker too many then, until a slot is given back that nobody is handed. Who has more to
// do than to end calls [Scheduler.Regain] first.
func (s *Scheduler) Do(ctx context.Context, jobs []Job) []error {
	errs := make([]error, len(jobs))
	for from := 0; from < len(jobs); {
		to := from + 1
		for jobs[from].Effect.Shared() && to < len(jobs) && jobs[to].Effect.Shared() {
			to++
		}
		s.stage(ctx, jobs[from:to], errs[from:to])
		from = to
	}
	return errs
}

// Regain is for a worker that has work to do though the ctx of its last batch has ended: where
// Do went on without a slot to hand over, it waits for one, before any queued job. It returns
// ctx's error if that ends first. No batch of the worker's may be under way.
func (s *Scheduler) Regain(ctx context.Context) error {
	if sl, ok := ctx.Value(slotKey{s}).(*slot); ok {
		return sl.regain(ctx)
	}
	return nil
}

// stage runs jobs together, then settles them.
//
// Concurrency: each goroutine writes only its own element of errs. The pool is waited for
// before anything is settled, and only this goroutine settles; hence no mutex.
func (s *Scheduler) stage(ctx context.Context, jobs []Job, errs []error) {
	reads := newQueue(s.reads)
	loan := s.lend(ctx, jobs)
	p := pool.New()
	for i, j := range jobs {
		// Lined up here and not in the goroutine: that is what makes the order of starts.
		if j.Slot {
			t := s.slots.join()
			p.Go(func() {
				place, err := s.work(ctx, t, j.Run)
				loan.ended(place)
				errs[i] = err
			})
		} else {
			t := reads.join()
			p.Go(func() { errs[i] = read(ctx, reads, t, j.Run) })
		}
	}
	p.Wait()
	for i, j := range jobs {
		if errs[i] == nil && j.Settle != nil {
			errs[i] = try(ctx, j.Settle)
		}
	}
}

// work runs a job with a slot of its own. It reports whether it leaves a place among the slots,
// which is then the caller's to pass on.
func (s *Scheduler) work(ctx context.Context, t ticket, run func(context.Context) error) (place bool, err error) {
	if err := s.slots.wait(ctx, t); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	sl := &slot{places: s.slots}
	err = try(context.WithValue(ctx, slotKey{s}, sl), run)
	return !sl.giveBack(), err
}

// read runs a job that needs no slot. It keeps the ctx of its batch: should it ask for
// workers itself, they use the slot of the batch's caller.
func read(ctx context.Context, reads *queue, t ticket, run func(context.Context) error) error {
	if err := reads.wait(ctx, t); err != nil {
		return err
	}
	defer reads.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return try(ctx, run)
}
