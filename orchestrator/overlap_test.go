package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/orchestrator"
	"skein/tools/gate"
)

// slow is a model in this process: the parent sends readers in one reply, each of which
// makes so many requests of a second.
type slow struct{ readers, requests int }

func (s slow) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	m := model.Message{Role: model.Assistant, Text: "done"}
	switch {
	case req.Origin.Agent == "0" && req.Origin.Turn == 1:
		for i := range s.readers {
			m.Calls = append(m.Calls, model.ToolCall{ID: fmt.Sprint(i), Name: "delegate_task", Args: `{"task":"look"}`})
		}
	case req.Origin.Agent == "0":
	default:
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return model.Reply{}, ctx.Err()
		}
		if req.Origin.Turn < s.requests {
			m.Calls = []model.ToolCall{{ID: "r", Name: "read_file", Args: `{"path":"a.txt"}`}}
		}
	}
	raw, err := json.Marshal(m.Text)
	m.Raw = raw
	return model.Reply{Message: m, Finish: model.FinishStop}, err
}

func (slow) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m.Text) }
func (slow) Dialect() string                                      { return "test" }
func (slow) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(len(ts)) }

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

func runSlow(t testing.TB, s slow, jobs int) (events []journal.Event, wall time.Duration) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a.txt", []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, err := orchestrator.Run(t.Context(), orchestrator.Options{
		Dir: dir, Client: s, Access: gate.Auto, NoSandbox: true, Jobs: jobs,
		Watch: func(e journal.Event) { events = append(events, e) },
	}, "go")
	if err != nil || out.Stop != agent.Completed {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	return events, time.Since(began)
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
				events, wall := runSlow(t, slow{tt.readers, 4}, tt.jobs)
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
		events, wall := runSlow(b, slow{3, 4}, 8)
		all, shortest, longest := overlap(spans(events))
		b.ReportMetric(100*all.Seconds()/shortest.Seconds(), "%overlap")
		b.ReportMetric((wall-longest).Seconds()*1000, "ms-beyond-slowest")
	}
}
