package orchestrator_test

import (
	"context"
	"testing"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
)

// A run whose time is up, or that is cancelled, before the model was asked ends for that
// reason, and what it could not find out is not said to be missing.
func TestEndedBeforeItBegan(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name string
		ctx  context.Context
		edit func(*orchestrator.Options)
		want agent.Stop
	}{
		{"timeout", t.Context(), func(o *orchestrator.Options) { o.Timeout = time.Nanosecond }, agent.Timeout},
		{"cancelled", cancelled, func(*orchestrator.Options) {}, agent.Cancelled},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, "- say: done").repo(map[string]string{"a.txt": "a\n"})
			if out := r.runContext(test.ctx, test.edit); out.Stop != test.want {
				t.Errorf("Run ended as %s (%s), want %s", out.Stop, out.Cause, test.want)
			}
			for _, e := range r.events {
				if p, err := e.Decode(); err != nil {
					t.Errorf("decode: %v", err)
				} else if n, ok := p.(*journal.Notice); ok {
					t.Errorf("the user was told: %s", n.Text)
				}
			}
		})
	}
}
