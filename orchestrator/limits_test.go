package orchestrator_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/orchestrator"
	"skein/tools/gate"
)

// player is a model in this process: what it says is a function.
type player func(ctx context.Context, req model.Request) model.Reply

func (p player) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	r := p(ctx, req)
	if ctx.Err() != nil {
		return model.Reply{}, ctx.Err()
	}
	raw, err := json.Marshal(r.Message)
	r.Message.Raw = raw
	return r, err
}

func (player) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m) }
func (player) Dialect() string                                      { return "test" }
func (player) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(len(ts)) }

// says is a reply with calls, each a tool's name and its arguments.
func says(text string, calls ...string) model.Reply {
	m := model.Message{Role: model.Assistant, Text: text}
	for _, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		m.Calls = append(m.Calls, model.ToolCall{ID: string(rune('a' + len(m.Calls))), Name: name, Args: args})
	}
	return model.Reply{Message: m, Finish: model.FinishStop}
}

// costs gives a reply its usage.
func costs(r model.Reply, in, out int64) model.Reply {
	r.Usage = model.Usage{Input: model.Tokens(in), CacheRead: model.Tokens(0), CacheWrite: model.Tokens(0), Output: model.Tokens(out), Reasoning: model.Tokens(0)}
	return r
}

// play runs a parent in a folder with one file.
func play(t *testing.T, p player, o orchestrator.Options) (out orchestrator.Outcome, reports []string) {
	t.Helper()
	o.Dir, o.Client, o.Access, o.NoSandbox = t.TempDir(), p, gate.Auto, true
	if err := os.WriteFile(o.Dir+"/a.txt", []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	watch := o.Watch
	o.Watch = func(e journal.Event) {
		if watch != nil {
			watch(e)
		}
		if payload, err := e.Decode(); err == nil {
			if s, ok := payload.(*journal.Settled); ok {
				reports = append(reports, s.Report)
			}
		}
	}
	out, err := orchestrator.Run(t.Context(), o, "go")
	if err != nil {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	return out, reports
}

const look, read = `delegate_task {"task":"look"}`, `read_file {"path":"a.txt"}`

// A child that comes to any of its limits reports what it has, says so, and costs its parent
// nothing but that.
func TestChildrenReportAtTheirLimits(t *testing.T) {
	price := &model.Price{Input: 1e4, CacheRead: 1e4, Output: 1e4} // a cent a token
	for _, tt := range []struct {
		name string
		o    orchestrator.Options
		deaf bool // does not answer when it is asked to report
		want string
		wall time.Duration // replies of the child take a minute
	}{
		{name: "turns", o: orchestrator.Options{Limits: orchestrator.Limits{ChildTurns: 3}}, want: "max-turns (stopped at its limit of 3 turns) · 4 turns\nanswer:\nfound half", wall: 4 * time.Minute},
		{name: "tokens", o: orchestrator.Options{Limits: orchestrator.Limits{ChildBudget: 500}}, want: "budget (stopped at its limit of 500 tokens) · 5 turns\nanswer:\nfound half", wall: 5 * time.Minute},
		{name: "dollars", o: orchestrator.Options{Limits: orchestrator.Limits{ChildBudgetUSD: 7}, Price: price}, want: "budget (stopped at its limit of $7.00) · 7 turns\nanswer:\nfound half", wall: 7 * time.Minute},
		{name: "the run's tokens", o: orchestrator.Options{Limits: orchestrator.Limits{Budget: 1000}}, want: "budget (stopped at the run's limit of 1000 tokens) · 7 turns\nanswer:\nfound half", wall: 7 * time.Minute},
		{name: "time", o: orchestrator.Options{Limits: orchestrator.Limits{ChildTime: 10 * time.Minute}}, want: "timeout (stopped at its limit of 10m0s) · 9 turns\nanswer:\nlooking", wall: 10 * time.Minute},
		{name: "time, a little longer", o: orchestrator.Options{Limits: orchestrator.Limits{ChildTime: 5*time.Minute + 40*time.Second}}, want: "timeout (stopped at its limit of 5m40s) · 5 turns\nanswer:\nlooking", wall: 5*time.Minute + 40*time.Second},
		{name: "time, and no report", o: orchestrator.Options{Limits: orchestrator.Limits{ChildTime: 10 * time.Minute}}, deaf: true, want: "timeout (stopped at its limit of 10m0s) · 9 turns\nanswer:\nlooking", wall: 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, reports := play(t, func(ctx context.Context, req model.Request) model.Reply {
					if req.Origin.Agent == "0" && req.Origin.Turn == 1 {
						return says("", look)
					} else if req.Origin.Agent == "0" {
						return says("done")
					}
					wait := time.Minute
					if tt.deaf && req.NoCalls {
						wait = time.Hour
					}
					select {
					case <-time.After(wait):
					case <-ctx.Done():
					}
					if req.NoCalls {
						return costs(says("found half"), 90, 10)
					}
					return costs(says("looking", read), 90, 10)
				}, tt.o)
				if wall := time.Since(began); len(reports) != 1 || !strings.HasSuffix(reports[0], " · "+tt.want) || wall != tt.wall {
					t.Errorf("after %v the child reported\n%q\nwant after %v\n%q", wall, reports, tt.wall, tt.want)
				}
			})
		})
	}
}

// The time of the closing turn is part of the agent's: one that answers in it reports.
func TestClosingTurnInTheRestOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		out, _ := play(t, func(ctx context.Context, req model.Request) model.Reply {
			wait := time.Hour
			if req.Origin.Turn == 1 || req.NoCalls {
				wait = 20 * time.Second
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			if req.NoCalls {
				return says("found half")
			}
			return says("looking", read)
		}, orchestrator.Options{Limits: orchestrator.Limits{Timeout: 10 * time.Minute}})
		if wall := time.Since(began); out.Stop != "timeout" || out.Cause != "stopped at the run's limit of 10m0s" || out.Answer != "found half" || wall != 9*time.Minute+50*time.Second {
			t.Errorf("Run = %s (%s) %q after %v, want timeout, and the report after 9m50s", out.Stop, out.Cause, out.Answer, wall)
		}
	})
}

// Agents are told when they have used most of what they have, of each limit once.
func TestAgentsAreWarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := map[string][]string{}
		_, _ = play(t, func(ctx context.Context, req model.Request) model.Reply {
			who, turn := req.Origin.Agent, req.Origin.Turn
			if last := req.Messages[len(req.Messages)-1]; last.Role == model.ToolRole {
				_, note, _ := strings.Cut(last.Text, "Used so far: ")
				told[who] = append(told[who], note)
			}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			switch {
			case who == "0" && turn == 1:
				return says("", look)
			case turn < 8 && who == "0.1" || turn == 2:
				return costs(says("", read), 90, 10)
			}
			return costs(says("done"), 90, 10)
		}, orchestrator.Options{Limits: orchestrator.Limits{ChildTurns: 9, ChildBudget: 1000, ChildTime: 8 * time.Minute, Timeout: 11 * time.Minute}})
		want := map[string][]string{
			"0.1": {"", "", "", "", "", "", "more than 80 % of your time of 8m0s. Finish now, or report what you have."},
			"0":   {"more than 80 % of the run's time of 11m0s. Finish now, or report what you have.", ""},
		}
		for who, notes := range want {
			if !slices.Equal(told[who], notes) {
				t.Errorf("%s was told %q, want %q", who, told[who], notes)
			}
		}
	})
}

// When the run's time is up its children report, at every depth, and after them their parent,
// which is told what they found.
func TestAllReportWhenTheRunsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		told := map[string]string{}
		out, reports := play(t, func(ctx context.Context, req model.Request) model.Reply {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			switch who := req.Origin.Agent; {
			case req.NoCalls:
				var all strings.Builder
				for _, m := range req.Messages {
					if m.Role == model.ToolRole {
						all.WriteString(m.Text)
					}
				}
				told[who] = all.String()
				return says("found by " + who)
			case who != "0.1.1" && req.Origin.Turn == 1:
				return says("", look)
			}
			return says("looking", read)
		}, orchestrator.Options{Limits: orchestrator.Limits{Timeout: 10 * time.Minute, MaxDepth: 2, MaxTurns: 1000, ChildTurns: 1000}})
		if wall := time.Since(began); out.Stop != "timeout" || out.Answer != "found by 0" || wall > 10*time.Minute-closing+10*time.Second {
			t.Errorf("Run = %s (%s) %q after %v, want timeout and its report", out.Stop, out.Cause, out.Answer, wall)
		}
		if len(reports) != 2 {
			t.Fatalf("%d reports, want 2: %q", len(reports), reports)
		}
		for i, who := range []string{"0.1.1", "0.1"} {
			if !strings.Contains(reports[i], "· timeout (stopped at the run's limit of 10m0s) · ") || !strings.HasSuffix(reports[i], "\nanswer:\nfound by "+who) {
				t.Errorf("%s reports %q", who, reports[i])
			}
		}
		if !strings.Contains(told["0.1"], "found by 0.1.1") || !strings.Contains(told["0"], "found by 0.1") {
			t.Errorf("told at the end: %q", told)
		}
	})
}

const closing = 30 * time.Second // of long limits, see closingTime
