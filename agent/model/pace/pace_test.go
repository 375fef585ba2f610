package pace

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"skein/agent/model"
	"skein/agent/model/retry"
)

// server is a model in this process that refuses whoever comes while so many are there. An
// exchange takes a second.
type server struct {
	room func() int // how many it serves at once now

	mu      sync.Mutex
	busy    int
	peak    int
	refused int
	order   []int // turns, as they came
}

func (s *server) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	s.mu.Lock()
	s.busy++
	s.peak = max(s.peak, s.busy)
	s.order = append(s.order, req.Origin.Turn)
	full := s.busy > s.room()
	if full {
		s.refused++
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	}()
	wait := time.Second
	if full {
		wait = 10 * time.Millisecond
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
	if full {
		return model.Reply{}, &model.Error{Provider: "p", Status: 429, Message: "slow down", Again: true}
	}
	return model.Reply{Message: model.Message{Role: model.Assistant, Text: "done"}, Finish: model.FinishStop}, nil
}

func (*server) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m) }
func (*server) Dialect() string                                      { return "test" }
func (*server) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(ts) }

// fifty asks fifty times at once and returns how long all took.
func fifty(t *testing.T, c model.Client) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if _, err := c.Exchange(t.Context(), model.Request{Origin: model.Origin{Turn: i}}); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// A storm of refusals over fifty calls lowers how many are made at once, and all of them finish.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 3
		bare, paced := &server{room: func() int { return room }}, &server{room: func() int { return room }}
		patient := retry.Options{For: time.Hour, Rand: func() float64 { return 0 }}
		fifty(t, retry.Client(bare, patient))
		p := Client(paced, 16, 16).(*client)
		took := fifty(t, retry.Client(p, patient))
		if paced.peak > 16 || p.limit >= 16 || p.busy != 0 || len(p.lined) != 0 {
			t.Errorf("%d at once, the limit is %d, %d busy and %d in line; want at most 16, less, and none", paced.peak, p.limit, p.busy, len(p.lined))
		}
		if paced.refused*2 > bare.refused {
			t.Errorf("%d requests were refused, %d without a pace; want half of that at most", paced.refused, bare.refused)
		}
		t.Logf("50 calls took %v, %d refused; without a pace %d refused", took, paced.refused, bare.refused)
	})
}

// A server that was in trouble for a while gets as many as before in the end.
func TestRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := 1
		s := &server{room: func() int { return room }}
		p := Client(s, 8, 8).(*client)
		fifty(t, retry.Client(p, retry.Options{For: time.Hour}))
		lowered := p.limit
		room = 8
		for range 2 {
			fifty(t, p)
		}
		if lowered >= 8 || p.limit != 8 {
			t.Errorf("the limit was lowered to %d and raised to %d, want less than 8, then 8", lowered, p.limit)
		}
	})
}

// Where one is asked at a time to begin with there is one more after each round that was answered
// while others waited, up to as many as may be.
func TestBeginsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{room: func() int { return 4 }}
		p := Client(s, 1, 4).(*client)
		for range 12 {
			if _, err := p.Exchange(t.Context(), model.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		if p.limit != 1 {
			t.Errorf("the limit is %d after calls one by one, want 1", p.limit)
		}
		took := fifty(t, p)
		if want := 14 * time.Second; took != want || s.peak != 4 || s.refused > 0 { // 1 + 2 + 3 + 11 × 4
			t.Errorf("50 calls took %v with %d at once and %d refused, want %v, 4 and none", took, s.peak, s.refused, want)
		}
		for first, want := range map[int]int{0: 1, 3: 3, 9: 4} {
			if got := Client(s, first, 4).(*client).limit; got != want {
				t.Errorf("beginning with %d of 4 gives %d, want %d", first, got, want)
			}
		}
	})
}

// Refusals of requests that were under way together lower the limit once.
func TestBurstCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Client(&server{room: func() int { return 0 }}, 16, 16).(*client)
		burst := func(n int) {
			var all sync.WaitGroup
			for range n {
				all.Go(func() { _, _ = p.Exchange(t.Context(), model.Request{}) }) // refused
			}
			all.Wait()
		}
		for i, want := range []int{8, 4, 2, 1, 1} {
			if burst(p.limit); p.limit != want {
				t.Errorf("after burst %d the limit is %d, want %d", i+1, p.limit, want)
			}
		}
	})
}

// Who comes first is served first.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{room: func() int { return 2 }}
		p := Client(s, 2, 2)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { _, _ = p.Exchange(t.Context(), model.Request{Origin: model.Origin{Turn: i}}) }) // none fails
			synctest.Wait()
		}
		all.Wait()
		for pair := range slices.Chunk(s.order, 2) { // both get their places at the same instant
			slices.Sort(pair)
		}
		if !slices.IsSorted(s.order) || len(s.order) != 20 {
			t.Errorf("served in the order %v", s.order)
		}
	})
}

// Whatever is cancelled when, no place is lost, there are never more calls than places, and who
// is cancelled in line leaves at once.
func TestCancelLosesNoPlace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(rt, "places")
		type call struct{ begins, cancelled time.Duration }
		calls := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) call {
			ms := rapid.IntRange(0, 4000)
			return call{time.Duration(ms.Draw(rt, "begins")) * time.Millisecond, time.Duration(ms.Draw(rt, "cancelled after")) * time.Millisecond}
		}), 1, 20).Draw(rt, "calls")
		synctest.Test(t, func(t *testing.T) {
			s := &server{room: func() int { return most }}
			p := Client(s, most, most).(*client)
			var all sync.WaitGroup
			for _, c := range calls {
				all.Go(func() {
					time.Sleep(c.begins)
					ctx, cancel := context.WithTimeout(t.Context(), c.cancelled)
					defer cancel()
					began := time.Now()
					_, err := p.Exchange(ctx, model.Request{})
					if took := time.Since(began); took > c.cancelled || err != nil && !errors.Is(err, context.DeadlineExceeded) {
						rt.Errorf("a call that was cancelled after %v took %v: %v", c.cancelled, took, err)
					}
				})
			}
			all.Wait()
			if p.busy != 0 || len(p.lined) != 0 || p.limit != most || s.peak > most || s.refused > 0 {
				rt.Errorf("%d busy, %d in line, limit %d, peak %d of %d", p.busy, len(p.lined), p.limit, s.peak, most)
			}
		})
	})
}

// A panic in the client gives its place back.
func TestPanicLosesNoPlace(t *testing.T) {
	p := Client(&server{room: func() int { panic("broken") }}, 1, 1).(*client)
	func() {
		defer func() { _ = recover() }()
		_, _ = p.Exchange(t.Context(), model.Request{})
	}()
	if p.busy != 0 {
		t.Errorf("%d places are taken, want none", p.busy)
	}
}
