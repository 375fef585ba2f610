package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/agent/model"
)

// failing is a check that fails so many times.
func failing(n int) Check {
	return func(context.Context) (string, error) {
		if n--; n >= 0 {
			return "make test (exit 2)\n--- FAIL: TestIt", nil
		}
		return "", nil
	}
}

func TestCheckTellsTheModelWhatFails(t *testing.T) {
	m := &replies{list: []model.Reply{say("done")}}
	var said []string
	talk := model.NewTranscript(m)
	out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Check: failing(9), Record: func(p journal.Payload) {
		if msg, is := p.(*journal.Message); is {
			said = append(said, msg.Message.Text)
		}
	}}, talk)
	if err != nil || out.Stop != Stuck || out.Cause != "its check still fails: make test (exit 2)" {
		t.Fatalf("Run = %s (%s), %v, want stuck with what fails", out.Stop, out.Cause, err)
	}
	if len(said) != 3 || !strings.HasSuffix(said[0], "\nmake test (exit 2)\n--- FAIL: TestIt") {
		t.Errorf("told %q, want three messages with the output", said)
	}
	if last := m.asked[len(m.asked)-1].Messages; last[len(last)-1].Role != model.User {
		t.Errorf("the last request ends with %+v, want what failed", last[len(last)-1])
	}
}

func TestCheckThatCannotBeRunEndsTheRun(t *testing.T) {
	m := &replies{list: []model.Reply{say("done")}}
	broken := errors.New("broken")
	check := func(context.Context) (string, error) { return "", broken }
	out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Check: check, Record: func(journal.Payload) {}}, model.NewTranscript(m))
	if !errors.Is(err, broken) || out.Stop != Failed {
		t.Errorf("Run = %s, %v, want failed with the error", out.Stop, err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	m := &replies{list: []model.Reply{say("done")}}
	ctx, cancel := context.WithCancelCause(t.Context())
	check := func(context.Context) (string, error) { cancel(ErrTimeout); return "", nil }
	out, err := Run(ctx, Options{Client: m, Batch: ok, MaxTurns: 9, Check: check, Record: func(journal.Payload) {}}, model.NewTranscript(m))
	if err != nil || out.Stop != Timeout {
		t.Errorf("Run = %s, %v, want timeout", out.Stop, err)
	}
}
