package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/orchestrator"
	"skein/tools/gate"
)

// talker is a model in this process that calls a small tool in every reply but its last. It
// counts what it is given to encode.
type talker struct {
	turns   int
	encoded int // bytes of text and calls
}

func (m *talker) Exchange(_ context.Context, req model.Request) (model.Reply, error) {
	turn := req.Origin.Turn
	msg := model.Message{Role: model.Assistant, Text: "done", Raw: json.RawMessage(`{"role":"assistant"}`)}
	if turn < m.turns {
		// Never the same call twice: a model that repeats itself is told so.
		msg.Calls = []model.ToolCall{{ID: "c", Name: "list_files", Args: fmt.Sprintf(`{"path":"sub","depth":%d}`, 10+turn)}}
	}
	return model.Reply{Message: msg, Finish: model.FinishStop}, nil
}

func (m *talker) Encode(msg model.Message) (json.RawMessage, error) {
	m.encoded += len(msg.Text)
	return json.Marshal(msg.Text)
}

func (*talker) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(len(ts)) }
func (*talker) Dialect() string                                      { return "test" }

// A mark is what the process had used when a reply came in.
type mark struct {
	encoded int
	allocs  uint64
	cpu     time.Duration
}

// talk runs a conversation of so many replies.
func talk(tb testing.TB, turns int) []mark {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		tb.Fatal(err)
	}
	m := &talker{turns: turns}
	var marks []mark
	_, err := orchestrator.Run(tb.Context(), orchestrator.Options{
		Dir: dir, Client: m, Access: gate.Auto, Boxes: orchestrator.Boxes{NoSandbox: true}, Limits: orchestrator.Limits{MaxTurns: 100},
		Watch: func(e journal.Event) {
			if e.Kind != "reply" {
				return
			}
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			var use syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // fails for no such who only
			marks = append(marks, mark{m.encoded, mem.Mallocs, time.Duration(use.Utime.Nano() + use.Stime.Nano())})
		},
	}, "go")
	if err != nil || len(marks) != turns {
		tb.Fatalf("%d replies, %v", len(marks), err)
	}
	return marks
}

// What a turn costs does not grow with the conversation: the same bytes are encoded, and as
// much is allocated, at turn 5 and at turn 60.
func TestATurnCostsTheSameEarlyAndLate(t *testing.T) {
	marks := talk(t, 60)
	early, late := marks[5].encoded-marks[4].encoded, marks[59].encoded-marks[58].encoded
	if early != late || early == 0 {
		t.Errorf("turn 5 encoded %d bytes, turn 59 %d", early, late)
	}
	// Slices that grow now and then, and the runtime's own, blur single turns.
	first, last := marks[10].allocs-marks[5].allocs, marks[59].allocs-marks[54].allocs
	if diff := int64(last) - int64(first); diff > int64(first)/10 || diff < -int64(first)/10 {
		t.Errorf("turns 5 to 10 made %d allocations, turns 55 to 60 %d", first, last)
	}
}

// BenchmarkTurns prints what a turn costs the harness, early and late in a conversation of 60.
func BenchmarkTurns(b *testing.B) {
	var allocs, cpu [2]float64
	for b.Loop() {
		marks := talk(b, 60)
		for i, from := range []int{4, 54} {
			allocs[i] += float64(marks[from+5].allocs-marks[from].allocs) / 5
			cpu[i] += float64((marks[from+5].cpu - marks[from].cpu).Microseconds()) / 5
		}
	}
	n := float64(b.N)
	b.ReportMetric(allocs[0]/n, "allocs/early-turn")
	b.ReportMetric(allocs[1]/n, "allocs/late-turn")
	b.ReportMetric(cpu[0]/n, "µs-CPU/early-turn")
	b.ReportMetric(cpu[1]/n, "µs-CPU/late-turn")
}
