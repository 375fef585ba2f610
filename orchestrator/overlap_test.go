package orchestrator_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent/journal"
	"skein/orchestrator"
)

// spans gives when each child had its slot.
func spans(events []journal.Event) map[string][2]time.Time {
	m := map[string][2]time.Time{}
	for _, e := range events {
		s := m[e.Agent]
		switch e.Kind {
		case "agent-started":
			s[0] = e.Time
		case "agent-ended":
			s[1] = e.Time
		}
		m[e.Agent] = s
	}
	delete(m, "0")
	return m
}

// overlap is the time in which all children were at work, and the length of the shortest
// and the longest of them.
func overlap(m map[string][2]time.Time) (all, shortest, longest time.Duration) {
	var from, to time.Time
	for _, s := range m {
		if from.IsZero() || s[0].After(from) {
			from = s[0]
		}
		if to.IsZero() || s[1].Before(to) {
			to = s[1]
		}
		d := s[1].Sub(s[0])
		longest = max(longest, d)
		if shortest == 0 || d < shortest {
			shortest = d
		}
	}
	return to.Sub(from), shortest, longest
}

// looking runs so many readers of four requests of a second each.
func looking(t testing.TB, readers, jobs int) (events []journal.Event, wall time.Duration) {
	t.Helper()
	reader := &grove{thinks: time.Second, turns: slices.Repeat([]reply{looks("a.txt")}, 3)}
	r, wall := grow(t, plant(&grove{turns: []reply{crowd(readers, reader)}}), func(o *orchestrator.Options) { o.Jobs = jobs })
	return r.events, wall
}

// Readers work at the same time, as many as there are slots, in virtual time to the second.
func TestReadersOverlap(t *testing.T) {
	for _, tt := range []struct {
		readers, jobs int
		wall          time.Duration
	}{
		{readers: 3, jobs: 8, wall: 4 * time.Second},
		{readers: 3, jobs: 1, wall: 12 * time.Second},
		{readers: 8, jobs: 4, wall: 8 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d readers, %d slots", tt.readers, tt.jobs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, wall := looking(t, tt.readers, tt.jobs)
				if wall != tt.wall {
					t.Errorf("the run took %v, want %v", wall, tt.wall)
				}
				if all, shortest, _ := overlap(spans(events)); tt.jobs >= tt.readers && all != shortest {
					t.Errorf("all were at work for %v of %v", all, shortest)
				}
			})
		})
	}
}

// BenchmarkReaders runs three children of four requests of a second each, in real time: the
// share of the shortest child's time in which all were at work, and what the run took
// beyond the slowest child.
func BenchmarkReaders(b *testing.B) {
	for b.Loop() {
		events, wall := looking(b, 3, 8)
		all, shortest, longest := overlap(spans(events))
		b.ReportMetric(100*all.Seconds()/shortest.Seconds(), "%overlap")
		b.ReportMetric((wall-longest).Seconds()*1000, "ms-beyond-slowest")
	}
}
