package orchestrator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
)

func TestClockStandsStillWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, c, stop := startClock(t.Context(), 10*time.Second)
		defer stop()
		time.Sleep(4 * time.Second)
		over := c.wait()
		time.Sleep(time.Hour)
		inner := c.wait()
		time.Sleep(time.Hour)
		inner()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("time was up while waiting")
		}
		over()
		<-ctx.Done()
		if got, want := time.Since(began), 3*time.Hour+10*time.Second; got != want {
			t.Errorf("time was up after %v, want %v", got, want)
		}
		if !errors.Is(context.Cause(ctx), agent.ErrTimeout) {
			t.Errorf("cause = %v", context.Cause(ctx))
		}
	})
}

func TestClockThatRanOutStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, c, stop := startClock(t.Context(), time.Second)
		defer stop()
		time.Sleep(2 * time.Second)
		c.wait()()
		if ctx.Err() == nil {
			t.Error("time is not up")
		}
		(*clock)(nil).wait()()
	})
}
