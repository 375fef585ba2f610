package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/tools"
)

// A limit leaves one closing turn, whose text is the outcome's; other ends have none.
func TestClosingTurn(t *testing.T) {
	call := reply("working", model.FinishToolCalls, "a {}")
	form := &Form{Schema: []byte(`{"type":"object"}`), Check: func(s string) error {
		if strings.HasPrefix(s, "{") {
			return nil
		}
		return errors.New("no object")
	}}
	for _, tt := range []struct {
		name   string
		list   []model.Reply
		edit   func(*Options)
		stop   Stop
		cause  string
		text   string
		closed bool
	}{
		{name: "turns", list: []model.Reply{call, call, say("found half")}, stop: MaxTurns, cause: "stopped at its limit of 2 turns", text: "found half", closed: true},
		{name: "budget", list: []model.Reply{call, say("found one")}, edit: func(o *Options) { o.Budget = &grants{1} }, stop: OverBudget, cause: "stopped at its limit of 3 calls", text: "found one", closed: true},
		{name: "budget before anything", list: []model.Reply{call}, edit: func(o *Options) { o.Budget = &grants{0} }, stop: OverBudget, cause: "stopped at its limit of 3 calls"},
		{name: "it calls all the same", list: []model.Reply{call, call, reply("so far", model.FinishToolCalls, "b {}")}, stop: MaxTurns, cause: "stopped at its limit of 2 turns", text: "so far", closed: true},
		{name: "it says nothing", list: []model.Reply{call, call, say(" ")}, stop: MaxTurns, cause: "stopped at its limit of 2 turns", text: "working", closed: true},
		{name: "form", list: []model.Reply{call, call, say("{}")}, edit: func(o *Options) { o.Form = form }, stop: MaxTurns, cause: "stopped at its limit of 2 turns", text: "{}", closed: true},
		{name: "form it does not fit", list: []model.Reply{call, call, say("half")}, edit: func(o *Options) { o.Form = form }, stop: MaxTurns, cause: "stopped at its limit of 2 turns; its last answer does not fit the schema: no object", text: "half", closed: true},
		{name: "form asked for beyond the budget", list: []model.Reply{say("words"), say("{}")}, edit: func(o *Options) { o.Form, o.Budget = form, &grants{1} }, stop: OverBudget, cause: "stopped at its limit of 3 calls", text: "{}", closed: true},
		{name: "stuck", list: []model.Reply{call}, edit: func(o *Options) { o.Batch, o.MaxTurns = fails, 9 }, stop: Stuck, cause: "the same a call failed 5 times: no", text: "working"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{list: tt.list}
			talk := model.NewTranscript(m)
			o := Options{Client: m, Batch: ok, MaxTurns: 2, Tools: []byte(`[]`), Record: func(journal.Payload) {}}
			if tt.edit != nil {
				tt.edit(&o)
			}
			out, err := Run(t.Context(), o, talk)
			if err != nil || out.Stop != tt.stop || out.Cause != tt.cause || out.Text != tt.text || out.Err != nil {
				t.Fatalf("Run = %s (%s) %q, %v, %v; want %s (%s) %q", out.Stop, out.Cause, out.Text, out.Err, err, tt.stop, tt.cause, tt.text)
			}
			paired(t, talk.Messages())
			asked := ""
			if n := len(m.asked); n > 0 && m.asked[n-1].NoCalls {
				req := m.asked[n-1].Messages
				asked = req[len(req)-1].Text
			}
			if strings.Contains(asked, "Your work is stopped at its limit of") != tt.closed {
				t.Errorf("the last request without calls asks %q; want a closing turn: %v", asked, tt.closed)
			}
		})
	}
}

// A closing turn that fails leaves the last text, and the stop of the limit.
func TestClosingTurnFails(t *testing.T) {
	m := &breaks{replies{list: []model.Reply{reply("working", model.FinishToolCalls, "a {}")}}}
	out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 2, Record: func(journal.Payload) {}}, model.NewTranscript(m))
	if err != nil || out.Stop != MaxTurns || out.Text != "working" || out.Err != nil {
		t.Errorf("Run = %s %q, %v, %v; want max-turns and the last text", out.Stop, out.Text, out.Err, err)
	}
}

// breaks is a model that answers no request without calls.
type breaks struct{ replies }

func (b *breaks) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	if req.NoCalls {
		return model.Reply{}, &model.Error{Provider: "p", Status: 401, Message: "who"}
	}
	return b.replies.Exchange(ctx, req)
}

// At four fifths of its turns an agent is told once, at the end of its last result; so it is
// of what else is nearly used.
func TestWarnings(t *testing.T) {
	const turnsWarning = "Used so far: 8 of your 10 turns. Finish now, or report what you have."
	for _, tt := range []struct {
		name  string
		turns int
		near  []string // at the second batch
		want  []string // what the results end with, by reply
	}{
		{name: "turns", turns: 10, want: []string{7: turnsWarning, 8: "", 9: ""}},
		{name: "few turns", turns: 4, want: []string{3: ""}},
		{name: "five turns", turns: 5, want: []string{3: "Used so far: 4 of your 5 turns. Finish now, or report what you have.", 4: ""}},
		{name: "another limit", turns: 4, near: []string{"most of your 100 tokens"}, want: []string{1: "Used so far: most of your 100 tokens. Finish now, or report what you have.", 3: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{list: []model.Reply{reply("", model.FinishToolCalls, "a {}", "b {}")}}
			talk := model.NewTranscript(m)
			batches := 0
			out, err := Run(t.Context(), Options{
				Client: m, MaxTurns: tt.turns, Record: func(journal.Payload) {},
				Batch: func(ctx context.Context, calls []model.ToolCall) ([]tools.Result, error) {
					batches++
					return ok(ctx, calls)
				},
				Near: func() []string {
					if batches == 2 {
						return tt.near
					}
					return nil
				},
			}, talk)
			if err != nil || out.Stop != MaxTurns {
				t.Fatalf("Run = %s, %v", out.Stop, err)
			}
			var got []string
			for _, msg := range talk.Messages() {
				text, note, _ := strings.Cut(msg.Text, "\n")
				switch {
				case text == "ran b":
					got = append(got, note)
				case msg.Role == model.ToolRole && note != "":
					t.Errorf("the result of a call before the last one says %q", msg.Text)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("results end with %q, want %q", got, tt.want)
			}
		})
	}
}

// dozing is a model that takes a second for each reply and never comes to an end of its work,
// nor, if it is deaf, to an answer when it is asked to report.
type dozing struct {
	replies
	deaf bool
}

func (d *dozing) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	wait := time.Second
	if d.deaf && req.NoCalls {
		wait = time.Hour
	}
	select {
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	case <-time.After(wait):
	}
	if req.NoCalls {
		return say("so far"), nil
	}
	return d.replies.Exchange(ctx, req)
}

// The closing turn has the time between the end of the work and the end of the agent's time.
func TestClosingTurnInTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		deaf  bool
		text  string
		after time.Duration
	}{
		{"it reports", false, "so far", 9500*time.Millisecond + time.Second},
		{"it never answers", true, "working", 12 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &dozing{replies{list: []model.Reply{reply("working", model.FinishToolCalls, "a {}")}}, tt.deaf}
				ctx, cancel := context.WithTimeoutCause(t.Context(), 12*time.Second, ErrTimeout)
				defer cancel()
				began := time.Now()
				out, err := Run(ctx, Options{
					Client: m, Batch: ok, MaxTurns: 50, Record: func(journal.Payload) {},
					Work: func(ctx context.Context) (context.Context, context.CancelFunc) {
						return context.WithTimeoutCause(ctx, 9500*time.Millisecond, ErrTimeout)
					},
				}, model.NewTranscript(m, model.Message{Role: model.User, Raw: json.RawMessage(`"go"`)}))
				if err != nil || out.Stop != Timeout || out.Text != tt.text || time.Since(began) != tt.after {
					t.Errorf("Run = %s %q after %v, %v; want timeout %q after %v", out.Stop, out.Text, time.Since(began), err, tt.text, tt.after)
				}
			})
		})
	}
}

// allowance keeps what it was told that replies took.
type allowance struct{ took []model.Usage }

// Reserve implements [Budget].
func (a *allowance) Reserve(int64, bool) (func(model.Usage), error) {
	return func(u model.Usage) { a.took = append(a.took, u) }, nil
}

// Spend implements [Budget].
func (*allowance) Spend(model.Usage) {}

// A reply of which the provider does not say what it cost is not taken to be free.
func TestReplyWithoutFiguresIsPaidFor(t *testing.T) {
	for name, usage := range map[string]model.Usage{"nothing": {}, "zeros": model.NoUsage()} {
		t.Run(name, func(t *testing.T) { paysFor(t, usage) })
	}
}

func paysFor(t *testing.T, usage model.Usage) {
	work := reply(strings.Repeat("word ", 80), model.FinishToolCalls, "a {}")
	work.Usage = usage
	last := say("done")
	last.Usage = usage
	a := &allowance{}
	talk := model.NewTranscript(&replies{}, model.Message{Role: model.User, Text: "go", Raw: json.RawMessage(`"` + strings.Repeat("go", 100) + `"`)})
	out, err := Run(t.Context(), Options{Client: &replies{list: []model.Reply{work, last}}, Batch: ok, Budget: a, MaxTurns: 2, Record: func(journal.Payload) {}}, talk)
	if err != nil || len(a.took) != 2 {
		t.Fatalf("Run = %v, %d replies were paid for, want 2", err, len(a.took))
	}
	if in, got := a.took[0].Prompt(), a.took[0].Output; in != model.Tokens(50) || got != model.Tokens(102) {
		t.Errorf("paid for %v tokens in and %v out, want a quarter of the bytes", in, got)
	}
	if in := a.took[1].Prompt().N; in < 150 {
		t.Errorf("paid for %v tokens of the conversation then, want all of it", in)
	}
	if out.Usage.Output != usage.Output {
		t.Errorf("usage = %v, want what the provider said", out.Usage)
	}
}
