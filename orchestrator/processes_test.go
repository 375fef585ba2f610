package orchestrator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"skein/sandbox"
)

// sleeper is a place whose commands take a second.
type sleeper struct {
	mu         sync.Mutex
	busy, peak int
	began      []string
}

func (s *sleeper) Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error) {
	s.mu.Lock()
	s.busy++
	s.peak = max(s.peak, s.busy)
	s.began = append(s.began, c.Argv[0])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	}()
	select {
	case <-time.After(time.Second):
		return sandbox.Output{}, nil
	case <-ctx.Done():
		return sandbox.Output{}, ctx.Err()
	}
}

func (*sleeper) Close() error { return nil }

// Commands of all places are in flight so many at once, in the order of asking; one that is
// cancelled leaves the line at once and takes nobody's place.
func TestProcessJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, s := semaphore.NewWeighted(2), &sleeper{}
		began := time.Now()
		var all sync.WaitGroup
		var names []string
		for i := range 6 {
			p := &place{}
			p.runCommands(places, s)
			ctx, name := t.Context(), string(rune('a'+i))
			if name == "d" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			} else {
				names = append(names, name)
			}
			all.Go(func() {
				_, err := p.ws.Exec.Run(ctx, sandbox.Command{Argv: []string{name}})
				if (name == "d") != errors.Is(err, context.DeadlineExceeded) || name == "d" && time.Since(began) != 500*time.Millisecond {
					t.Errorf("command %s ended after %v: %v", name, time.Since(began), err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		slices.Sort(s.began[4:]) // two that began at the same instant
		slices.Sort(s.began[2:4])
		if s.peak != 2 || !slices.Equal(s.began, names) || time.Since(began) != 3*time.Second {
			t.Errorf("%d at once, in the order %v, all after %v; want 2, %v, 3s", s.peak, s.began, time.Since(began), names)
		}
	})
}
