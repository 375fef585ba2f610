package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"skein/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDoSettlesInRequestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var settled []int
		job := func(i int, d time.Duration) scheduler.Job {
			return scheduler.Job{
				Effect: scheduler.Isolated,
				Run:    func(context.Context) error { time.Sleep(d); return nil },
				Settle: func(context.Context) error { settled = append(settled, i); return nil },
			}
		}
		start := time.Now()
		errs := scheduler.New(scheduler.Options{Slots: 3}).Do(t.Context(), []scheduler.Job{job(1, 3*time.Second), job(2, time.Second), job(3, 2*time.Second)})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("Do = %v, want no error", err)
		}
		if got := time.Since(start); got != 3*time.Second || !slices.Equal(settled, []int{1, 2, 3}) {
			t.Errorf("Do settled %v after %v, want [1 2 3] after 3s", settled, got)
		}
	})
}

// A diary notes what happened at which second of a synctest bubble, as "0s a+ b+, 1s a-".
type diary struct {
	start time.Time
	mu    sync.Mutex // guards lines
	lines []string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%v %s", time.Since(d.start), what))
}

// String sorts what happened in the same second: its order is nobody's promise.
func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.lines)
	return strings.Join(d.lines, ", ")
}

// job takes the time given; it notes name+ when it starts, name- when it ends and name=
// when it is settled.
func (d *diary) job(e scheduler.Effect, slot bool, name string, takes time.Duration) scheduler.Job {
	return scheduler.Job{
		Effect: e,
		Slot:   slot,
		Run: func(context.Context) error {
			d.note(name + "+")
			time.Sleep(takes)
			d.note(name + "-")
			return nil
		},
		Settle: func(context.Context) error { d.note(name + "="); return nil },
	}
}

func TestDoStages(t *testing.T) {
	const r, i, w, x = scheduler.Read, scheduler.Isolated, scheduler.Write, scheduler.Execute
	for _, tt := range []struct {
		name    string
		options scheduler.Options
		effects []scheduler.Effect
		slots   bool
		want    string
	}{
		{name: "shared effects overlap", effects: []scheduler.Effect{r, i, r}, want: "0s 0+, 0s 1+, 0s 2+, 1s 0-, 1s 0=, 1s 1-, 1s 1=, 1s 2-, 1s 2="},
		{name: "a write stands alone", effects: []scheduler.Effect{r, w, r}, want: "0s 0+, 1s 0-, 1s 0=, 1s 1+, 2s 1-, 2s 1=, 2s 2+, 3s 2-, 3s 2="},
		{name: "so do commands", effects: []scheduler.Effect{x, x}, want: "0s 0+, 1s 0-, 1s 0=, 1s 1+, 2s 1-, 2s 1="},
		{name: "reads at once", options: scheduler.Options{Reads: 1}, effects: []scheduler.Effect{r, r}, want: "0s 0+, 1s 0-, 1s 1+, 2s 0=, 2s 1-, 2s 1="},
		{name: "slots at once", options: scheduler.Options{Slots: 1}, slots: true, effects: []scheduler.Effect{r, i}, want: "0s 0+, 1s 0-, 1s 1+, 2s 0=, 2s 1-, 2s 1="},
		{name: "reads need no slot", options: scheduler.Options{Slots: 1}, effects: []scheduler.Effect{r, r}, want: "0s 0+, 0s 1+, 1s 0-, 1s 0=, 1s 1-, 1s 1="},
		{name: "nothing", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				var jobs []scheduler.Job
				for n, e := range tt.effects {
					jobs = append(jobs, d.job(e, tt.slots, fmt.Sprint(n), time.Second))
				}
				errs := scheduler.New(tt.options).Do(t.Context(), jobs)
				if err := errors.Join(errs...); err != nil || len(errs) != len(jobs) {
					t.Fatalf("Do(%v) = %v, want %d times nil", tt.effects, errs, len(jobs))
				}
				if got := d.String(); got != tt.want {
					t.Errorf("Do(%v):\n got %s\nwant %s", tt.effects, got, tt.want)
				}
			})
		})
	}
}

func TestDoStartsInRequestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started []int // one at a time: there is one slot
		var jobs []scheduler.Job
		var want []int
		for i := range 50 {
			want = append(want, i)
			jobs = append(jobs, scheduler.Job{Effect: scheduler.Read, Slot: true, Run: func(context.Context) error {
				started = append(started, i)
				time.Sleep(time.Second)
				return nil
			}})
		}
		scheduler.New(scheduler.Options{Slots: 1}).Do(t.Context(), jobs)
		if !slices.Equal(started, want) {
			t.Errorf("Do started %v, want request order", started)
		}
	})
}

func TestDoKeepsSiblingsOfFailures(t *testing.T) {
	boom, sour := errors.New("boom"), errors.New("sour")
	settled := [5]bool{}
	settle := func(i int, err error) func(context.Context) error {
		return func(context.Context) error { settled[i] = true; return err }
	}
	errs := scheduler.New(scheduler.Options{}).Do(t.Context(), []scheduler.Job{
		{Effect: scheduler.Isolated, Run: func(context.Context) error { return boom }, Settle: settle(0, nil)},
		{Effect: scheduler.Isolated, Run: func(context.Context) error { panic(boom) }, Settle: settle(1, nil)},
		{Effect: scheduler.Isolated, Run: func(context.Context) error { return nil }, Settle: settle(2, sour)},
		{Effect: scheduler.Isolated, Run: func(context.Context) error { return nil }, Settle: func(context.Context) error { settled[3] = true; panic("late") }},
		{Effect: scheduler.Write, Run: func(context.Context) error { return nil }, Settle: settle(4, nil)},
	})
	if want := [5]bool{false, false, true, true, true}; settled != want {
		t.Errorf("Do settled %v, want %v", settled, want)
	}
	if !errors.Is(errs[0], boom) || !errors.Is(errs[2], sour) || errs[4] != nil {
		t.Errorf("Do = %v, want boom, _, sour, _, nil", errs)
	}
	var p *scheduler.PanicError
	if !errors.As(errs[1], &p) || !errors.Is(errs[1], boom) || !strings.Contains(string(p.Stack), "scheduler_test.go") {
		t.Errorf("error of a panicking Run = %v, want a PanicError of boom with its stack", errs[1])
	}
	if !errors.As(errs[3], &p) || p.Error() != "job panicked: late" {
		t.Errorf("error of a panicking Settle = %v, want job panicked: late", errs[3])
	}
}

func TestDoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		errs := scheduler.New(scheduler.Options{Slots: 1, Reads: 1}).Do(ctx, []scheduler.Job{
			d.job(scheduler.Isolated, true, "a", time.Second),
			d.job(scheduler.Isolated, true, "b", time.Second), // started when ctx ends: waited for and settled
			d.job(scheduler.Isolated, true, "c", time.Second),
			d.job(scheduler.Read, false, "d", time.Second),
			d.job(scheduler.Read, false, "e", time.Second),
			d.job(scheduler.Read, false, "f", time.Second),
			d.job(scheduler.Write, false, "g", time.Second),
		})
		want := "0s a+, 0s d+, 1s a-, 1s b+, 1s d-, 1s e+, 2s a=, 2s b-, 2s b=, 2s d=, 2s e-, 2s e="
		if got := d.String(); got != want {
			t.Errorf("Do:\n got %s\nwant %s", got, want)
		}
		for i, err := range errs {
			if late := i == 2 || i >= 5; late != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error of job %d = %v, want the deadline's: %t", i, err, late)
			}
		}
	})
}

func TestDoStartsNothingOnceCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	jobs := []scheduler.Job{{Effect: scheduler.Read}, {Effect: scheduler.Read, Slot: true}, {Effect: scheduler.Write}}
	for i := range jobs {
		jobs[i].Run = func(context.Context) error { t.Errorf("job %d ran", i); return nil }
	}
	for range 20 { // free places and an ended ctx: which of the two select sees is chance
		for i, err := range scheduler.New(scheduler.Options{}).Do(ctx, jobs) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error of job %d = %v, want context canceled", i, err)
			}
		}
	}
}

func TestHoldIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		s := scheduler.New(scheduler.Options{Slots: 1})
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if err := s.Hold(t.Context(), d.job(scheduler.Execute, false, fmt.Sprint(i), time.Second).Run); err != nil {
					t.Errorf("Hold = %v, want nil", err)
				}
			})
			synctest.Wait() // until this one has the slot or is queued
		}
		wg.Wait()
		if got, want := d.String(), "0s 0+, 1s 0-, 1s 1+, 2s 1-, 2s 2+, 3s 2-"; got != want {
			t.Errorf("Hold:\n got %s\nwant %s", got, want)
		}
	})
}

// A caller goes on as soon as its workers have ended, though others queued before it.
func TestDoComesBackBeforeQueuedWorkersStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		s := scheduler.New(scheduler.Options{Slots: 1})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = s.Hold(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Second)
				s.Do(ctx, []scheduler.Job{d.job(scheduler.Read, true, "child", time.Second)})
				d.note("back")
				time.Sleep(time.Second)
				d.note("end")
				return nil
			})
		})
		synctest.Wait()
		for i := range 2 { // one queues before the child, one behind it
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 1500 * time.Millisecond)
				_ = s.Hold(t.Context(), d.job(scheduler.Read, false, fmt.Sprint("other", i), time.Second).Run)
			})
		}
		wg.Wait()
		want := "1s other0+, 2s child+, 2s other0-, 3s back, 3s child-, 3s child=, 4s end, 4s other1+, 5s other1-"
		if got := d.String(); got != want {
			t.Errorf("Do:\n got %s\nwant %s", got, want)
		}
	})
}

// comeBack has a caller hold the only slot, which two others wait for, and give it up for a worker
// that is cancelled in the queue; then it does as told. It returns what happened when.
func comeBack(t *testing.T, then func(ctx context.Context, s *scheduler.Scheduler, d *diary, did error)) string {
	d := newDiary()
	s := scheduler.New(scheduler.Options{Slots: 1})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Hold(t.Context(), func(ctx context.Context) error {
			time.Sleep(2 * time.Second) // others queue up
			batch, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			errs := s.Do(batch, []scheduler.Job{d.job(scheduler.Read, true, "child", time.Second)})
			then(ctx, s, d, errs[0])
			time.Sleep(2 * time.Second)
			d.note("end")
			return nil
		})
	})
	for range 2 {
		wg.Go(func() {
			time.Sleep(time.Second)
			_ = s.Hold(t.Context(), d.job(scheduler.Read, false, "other", 3*time.Second).Run)
		})
	}
	wg.Wait()
	return d.String()
}

// A caller whose workers are cancelled in the queue comes back at once, though there is no
// free slot. The next that comes free is owed to it: nobody starts with that one.
func TestDoComesBackWhenItsQueuedWorkersAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := comeBack(t, func(_ context.Context, _ *scheduler.Scheduler, d *diary, did error) {
			d.note(fmt.Sprint("back, ", did))
		})
		want := "2s other+, 4s back, context deadline exceeded, 5s other-, 6s end, 6s other+, 9s other-"
		if got != want {
			t.Errorf("Do:\n got %s\nwant %s", got, want)
		}
	})
}

// A caller that came back so and has work to do waits for a slot like everybody, but before those
// who are queued. Where its time ends first it is as if it had not asked.
func TestRegain(t *testing.T) {
	for name, tt := range map[string]struct {
		patience time.Duration
		want     string
	}{
		"there is one in time": {time.Hour, "10s other-, 2s other+, 4s back, 5s other-, 5s regained, <nil>, 7s end, 7s other+"},
		"there is none":        {500 * time.Millisecond, "2s other+, 4.5s regained, context deadline exceeded, 4s back, 5s other-, 6.5s end, 6.5s other+, 9.5s other-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := comeBack(t, func(ctx context.Context, s *scheduler.Scheduler, d *diary, _ error) {
					d.note("back")
					wait, cancel := context.WithTimeout(ctx, tt.patience)
					defer cancel()
					d.note(fmt.Sprint("regained, ", s.Regain(wait)))
				})
				if got != tt.want {
					t.Errorf("Regain:\n got %s\nwant %s", got, tt.want)
				}
			})
		})
	}
	s := scheduler.New(scheduler.Options{})
	if err := s.Regain(t.Context()); err != nil {
		t.Errorf("Regain without a slot = %v", err)
	}
	if err := s.Hold(t.Context(), s.Regain); err != nil {
		t.Errorf("Regain of who has a slot = %v", err)
	}
}

// A place too many is handed to nobody: whoever waited for the worker that had it came back without
// one, too.
func TestRegainAfterAWorkerWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		s := scheduler.New(scheduler.Options{Slots: 1})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = s.Hold(t.Context(), func(ctx context.Context) error {
				s.Do(ctx, []scheduler.Job{{Slot: true, Run: func(ctx context.Context) error {
					time.Sleep(time.Second) // somebody queues up
					batch, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					s.Do(batch, []scheduler.Job{d.job(scheduler.Read, true, "child", time.Second)})
					return nil
				}}})
				d.note("back")
				err := s.Regain(ctx)
				d.note(fmt.Sprint("regained, ", err))
				return nil
			})
		})
		synctest.Wait()
		_ = s.Hold(t.Context(), d.job(scheduler.Read, false, "other", 3*time.Second).Run)
		wg.Wait()
		if got, want := d.String(), "1s other+, 2s back, 4s other-, 4s regained, <nil>"; got != want {
			t.Errorf("Regain:\n got %s\nwant %s", got, want)
		}
	})
}

// Depth 2 with 8 workers of 8 workers each on two slots: nobody waits for ever, and never
// do more than two work.
func TestDoNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Slots: 2})
		var working, most, ran atomic.Int64
		busy := func() {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(time.Second)
			working.Add(-1)
		}
		var batch func(ctx context.Context, depth int) error
		batch = func(ctx context.Context, depth int) error {
			ran.Add(1)
			busy()
			if depth == 0 {
				return nil
			}
			var jobs []scheduler.Job
			for range 8 {
				jobs = append(jobs, scheduler.Job{Effect: scheduler.Isolated, Slot: true, Run: func(ctx context.Context) error { return batch(ctx, depth-1) }})
			}
			err := errors.Join(s.Do(ctx, jobs)...)
			busy()
			return err
		}
		err := s.Hold(t.Context(), func(ctx context.Context) error { return batch(ctx, 2) })
		if err != nil || ran.Load() != 1+8+64 || most.Load() != 2 {
			t.Errorf("Hold = %v with %d runs, %d at once, want nil, 73, 2", err, ran.Load(), most.Load())
		}
	})
}

// Slots belong to one scheduler: a ctx with a slot of another is a ctx without.
func TestSlotsOfTwoSchedulers(t *testing.T) {
	a, b := scheduler.New(scheduler.Options{Slots: 1}), scheduler.New(scheduler.Options{Slots: 1})
	err := a.Hold(t.Context(), func(ctx context.Context) error {
		return b.Hold(ctx, func(ctx context.Context) error {
			return a.Hold(ctx, func(context.Context) error { return nil }) // a's slot is given back through b's ctx
		})
	})
	if err != nil {
		t.Errorf("Hold = %v, want nil", err)
	}
}

func TestEffectString(t *testing.T) {
	for e, want := range map[scheduler.Effect]string{
		scheduler.Execute: "execute", scheduler.Write: "write", scheduler.Read: "read", scheduler.Isolated: "isolated", 99: "execute",
	} {
		if got := e.String(); got != want {
			t.Errorf("Effect(%d).String() = %q, want %q", int(e), got, want)
		}
	}
}

// Writers finish in any order; their changes are merged as they were asked for.
func ExampleScheduler_Do() {
	s := scheduler.New(scheduler.Options{Slots: 2})
	second := make(chan struct{})
	merge := func(name string) func(context.Context) error {
		return func(context.Context) error { fmt.Println("merge", name); return nil }
	}
	errs := s.Do(context.Background(), []scheduler.Job{
		{Effect: scheduler.Isolated, Slot: true, Run: func(context.Context) error { <-second; return nil }, Settle: merge("first")},
		{Effect: scheduler.Isolated, Slot: true, Run: func(context.Context) error { close(second); return nil }, Settle: merge("second")},
		{Effect: scheduler.Write, Run: func(context.Context) error { fmt.Println("write"); return errors.New("disk full") }},
	})
	fmt.Println(errs)
	// Output:
	// merge first
	// merge second
	// write
	// [<nil> <nil> disk full]
}

func BenchmarkDo(b *testing.B) {
	for _, n := range []int{1, 16, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := scheduler.New(scheduler.Options{})
			jobs := slices.Repeat([]scheduler.Job{{Effect: scheduler.Read, Slot: true, Run: func(context.Context) error { return nil }}}, n)
			b.ReportAllocs()
			for b.Loop() {
				s.Do(context.Background(), jobs)
			}
		})
	}
}
