package orchestrator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"skein/tools/gate"
)

// A person answers after a minute, what is asked is written down.
type person struct {
	asked  []string
	answer func(q gate.Question) gate.Answer
}

func (p *person) Ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	p.asked = append(p.asked, q.Agent) // one question at a time
	select {
	case <-time.After(time.Minute):
		return p.answer(q), nil
	case <-ctx.Done():
		return gate.Answer{}, context.Cause(ctx)
	}
}

// Questions are put one at a time, the oldest first. A person's time counts from when a question
// is put; one whose agent has ended is never put.
func TestInboxPutsTheOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: func(gate.Question) gate.Answer { return gate.Answer{Granted: true} }}
		box := newInbox(p, 90*time.Second)
		began := time.Now()
		gone, cancel := context.WithCancel(t.Context())
		took := make([]time.Duration, 4)
		done := make(chan int)
		for i, agent := range []string{"0.3", "0.1", "0.4", "0.2"} {
			ctx := t.Context()
			if agent == "0.4" {
				ctx = gone
			}
			go func() { // waited for by the receives below
				a, _, err := box.ask(ctx, gate.Question{Agent: agent, Detail: agent})
				if ended := errors.Is(err, context.Canceled); ended != (agent == "0.4") || a.Granted == ended {
					t.Errorf("%s was told %v, %v", agent, a, err)
				}
				took[i] = time.Since(began)
				done <- i
			}()
			synctest.Wait()
		}
		cancel()
		for range took {
			<-done
		}
		if want := []string{"0.3", "0.1", "0.2"}; !slices.Equal(p.asked, want) {
			t.Errorf("put %q, want %q", p.asked, want)
		}
		if want := []time.Duration{time.Minute, 2 * time.Minute, 0, 3 * time.Minute}; !slices.Equal(took, want) {
			t.Errorf("answered after %v, want %v", took, want)
		}
	})
}

func TestInboxIsNotAnsweredForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: func(gate.Question) gate.Answer { return gate.Answer{Granted: true} }}
		began := time.Now()
		if a, by, err := newInbox(p, 59*time.Second).ask(t.Context(), gate.Question{}); a.Granted || by != byNobody || !errors.Is(err, errLate) {
			t.Errorf("ask = %v, %q, %v, want a no for want of an answer", a, by, err)
		}
		if d := time.Since(began); d != 59*time.Second {
			t.Errorf("it took %v", d)
		}
		if a, by, err := newInbox(nil, time.Minute).ask(t.Context(), gate.Question{}); a.Granted || by != byNobody || !errors.Is(err, errNobody) {
			t.Errorf("ask of nobody = %v, %q, %v", a, by, err)
		}
	})
}

// Who answered "and the same again" is not asked the same again, by no agent; but what differs in
// anything is not the same.
func TestInboxRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{answer: func(q gate.Question) gate.Answer {
			return gate.Answer{Granted: q.Tool != "rm", Again: q.Detail != "once"}
		}}
		box := newInbox(p, time.Hour)
		first := gate.Question{Agent: "0.1", Title: "one", Tool: "bash", Purpose: "run", Detail: "go test", Dir: "/w"}
		other := func(edit func(*gate.Question)) gate.Question {
			q := first
			q.Agent, q.Title = "0.2", "two"
			edit(&q)
			return q
		}
		for i, tt := range []struct {
			q    gate.Question
			want string
		}{
			{first, byUser},
			{first, byEarlier},
			{other(func(*gate.Question) {}), byEarlier},
			{other(func(q *gate.Question) { q.Detail = "go test ./..." }), byUser},
			{other(func(q *gate.Question) { q.Dir = "/v" }), byUser},
			{other(func(q *gate.Question) { q.Tool = "sh" }), byUser},
			{other(func(q *gate.Question) { q.Purpose = "run outside" }), byUser},
			{other(func(q *gate.Question) { q.Detail = "once" }), byUser},
			{other(func(q *gate.Question) { q.Detail = "once" }), byUser},
			{other(func(q *gate.Question) { q.Tool = "rm" }), byUser}, // a no is not remembered
			{other(func(q *gate.Question) { q.Tool = "rm" }), byUser},
		} {
			if a, by, err := box.ask(t.Context(), tt.q); by != tt.want || err != nil || a.Granted != (tt.q.Tool != "rm") {
				t.Errorf("question %d: %v by %q, %v; want %q", i+1, a, by, err, tt.want)
			}
		}
	})
}
