package orchestrator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
)

func TestClockStandsStillWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, c, stop := startClock(t.Context(), own, 10*time.Second)
		defer stop()
		work, done := c.workTime(ctx)
		defer done()
		time.Sleep(4 * time.Second)
		over := c.wait()
		time.Sleep(time.Hour)
		inner := c.wait()
		time.Sleep(time.Hour)
		inner()
		time.Sleep(time.Hour)
		if work.Err() != nil {
			t.Fatal("time was up while waiting")
		}
		over()
		<-work.Done()
		if got, want := time.Since(began), 3*time.Hour+9*time.Second; got != want || ctx.Err() != nil {
			t.Errorf("the work ended after %v, want %v, and all: %v", got, want, ctx.Err())
		}
		over = c.wait()
		time.Sleep(time.Hour)
		over()
		<-ctx.Done()
		if got, want := time.Since(began), 4*time.Hour+10*time.Second; got != want {
			t.Errorf("time was up after %v, want %v", got, want)
		}
		for _, ctx := range []context.Context{work, ctx} {
			if err := context.Cause(ctx); !errors.Is(err, agent.ErrTimeout) || err.Error() != "stopped at its limit of 10s" {
				t.Errorf("cause = %v", err)
			}
		}
	})
}

func TestClockThatRanOutStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, stop := startClock(t.Context(), own, time.Second)
		defer stop()
		time.Sleep(2 * time.Second)
		c.wait()()
		if ctx.Err() == nil {
			t.Error("time is not up")
		}
		work, done := c.workTime(context.Background())
		defer done()
		if work.Err() == nil {
			t.Error("work begins after its time")
		}
	})
}

// On a busy machine a timer rings late. A wait that begins meanwhile stops it: it is made up for
// when the wait is over.
func TestClockThatWasLateRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, stop := startClock(t.Context(), own, 10*time.Second)
		defer stop()
		work, done := c.workTime(ctx)
		defer done()
		c.since = c.since.Add(-11 * time.Second)
		c.wait()()
		synctest.Wait()
		if work.Err() == nil || ctx.Err() != nil {
			t.Errorf("the work: %v, all: %v, want the work to have ended", work.Err(), ctx.Err())
		}
		<-ctx.Done()
	})
}

// No clock is one without an end, and the run's never stands still.
func TestClocksThatDoNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *clock
		none.wait()()
		ctx, done := none.workTime(t.Context())
		time.Sleep(time.Hour)
		if ctx.Err() != nil || none.near() != nil {
			t.Error("a clock that is none ended the work, or is near its end")
		}
		done()

		ctx, c, stop := startClock(t.Context(), runs, 10*time.Minute)
		defer stop()
		defer clocks{run: c}.wait()()
		time.Sleep(8*time.Minute - time.Second)
		if got := c.near(); got != nil {
			t.Errorf("near() = %v before four fifths", got)
		}
		time.Sleep(time.Second)
		if got := c.near(); len(got) != 1 || got[0] != "the run's time of 10m0s" {
			t.Errorf("near() = %v at four fifths", got)
		}
		work, done := c.workTime(ctx)
		defer done()
		time.Sleep(90 * time.Second) // 30 s before the end
		<-work.Done()
		if ctx.Err() != nil {
			t.Error("no time is left for the closing turn")
		}
		time.Sleep(31 * time.Second)
		if ctx.Err() == nil {
			t.Error("the run's clock stood still")
		}
	})
}

// Whoever is further from the root ends earlier, by what those above need for their closing turns.
func TestPartsOfTheRunsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, r, stop := startClock(t.Context(), runs, 10*time.Minute)
		defer stop()
		parent := clocks{run: r}
		work, done := parent.workTime(ctx)
		defer done()
		time.Sleep(time.Minute)
		var ends []context.Context // the latest first
		for range 3 {
			ctx, child, stop := parent.startChild(work, time.Hour)
			defer stop()
			work, done = child.workTime(ctx)
			defer done()
			ends, parent = append(ends, ctx, work), child
		}
		time.Sleep(7*time.Minute - time.Second)
		if got := parent.near(); len(got) > 0 {
			t.Errorf("near() = %q before four fifths of the run's time", got)
		}
		time.Sleep(time.Second)
		if got := parent.near(); len(got) != 1 || got[0] != "the run's time of 10m0s" {
			t.Errorf("near() = %q at four fifths of the run's time", got)
		}
		for i, ctx := range slices.Backward(ends) {
			<-ctx.Done()
			want := 10*time.Minute - time.Duration(i/2+1+i%2)*closingTime
			if got := time.Since(began); got != want {
				t.Errorf("context %d ended after %v, want %v", i, got, want)
			}
		}
	})
}
