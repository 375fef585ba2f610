package modeltest

import (
	"runtime"
	"strings"
	"testing"

	"skein/agent/model"
)

// cost checks that what an exchange allocates does not grow with the history. The server's
// part is counted too, but it is the same for each: it reads requests without keeping them.
func cost(t *testing.T, m *mode) {
	_, c := record(t, m, "- say: hi\n")
	measure := func(turns int) (allocs, size float64) {
		tr := model.NewTranscript(c)
		add(t, tr, model.Message{Role: model.System, Text: "system"})
		for range turns {
			add(t, tr, model.Message{Role: model.User, Text: strings.Repeat("some text ", 400)})
			add(t, tr, model.Message{Role: model.Assistant, Text: strings.Repeat("more text ", 400)})
		}
		add(t, tr, model.Message{Role: model.User, Text: "and?"})
		req := turn(tr, 1)
		const runs = 50
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allocs = testing.AllocsPerRun(runs, func() {
			if _, err := c.Exchange(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		})
		runtime.ReadMemStats(&after)
		return allocs, float64(after.TotalAlloc-before.TotalAlloc) / (runs + 1)
	}
	measure(5) // opens the connection, fills pools
	fewAllocs, few := measure(5)
	manyAllocs, many := measure(60) // 440,000 bytes more of history
	if manyAllocs > fewAllocs+5 {   // the transport's goroutines allocate now and then
		t.Errorf("an exchange makes %v allocations after 60 turns, %v after 5, want them equal", manyAllocs, fewAllocs)
	}
	if many > few+20_000 { // the pool of copy buffers may give one up
		t.Errorf("an exchange allocates %.0f bytes after 60 turns, %.0f after 5, want them equal", many, few)
	}
}
