package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/tools"
)

// replies is a model that gives its replies in turn, and the last one for ever.
type replies struct {
	list  []model.Reply
	asked []model.Request
	err   error
}

func (r *replies) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, ctx.Err()
	}
	r.asked = append(r.asked, req)
	if r.err != nil {
		return model.Reply{}, r.err
	}
	return r.list[min(len(r.asked), len(r.list))-1], nil
}

func (*replies) Encode(m model.Message) (json.RawMessage, error)      { return json.Marshal(m) }
func (*replies) Dialect() string                                      { return "test" }
func (*replies) EncodeTools(ts []model.Tool) (json.RawMessage, error) { return json.Marshal(ts) }
func say(text string) model.Reply                                     { return reply(text, model.FinishStop) }

func reply(text string, f model.Finish, calls ...string) model.Reply {
	m := model.Message{Role: model.Assistant, Text: text, Raw: json.RawMessage(`{"raw":"` + text + `"}`)}
	for i, c := range calls {
		name, args, _ := strings.Cut(c, " ")
		m.Calls = append(m.Calls, model.ToolCall{ID: fmt.Sprint(i), Name: name, Args: args})
	}
	u := model.Usage{Input: model.Tokens(10), CacheRead: model.Tokens(0), Output: model.Tokens(5)}
	return model.Reply{Message: m, Finish: f, Usage: u}
}

func ok(_ context.Context, calls []model.ToolCall) ([]tools.Result, error) {
	rs := make([]tools.Result, len(calls))
	for i, c := range calls {
		rs[i].Text = "ran " + c.Name
	}
	return rs, nil
}

func fails(_ context.Context, calls []model.ToolCall) ([]tools.Result, error) {
	rs := make([]tools.Result, len(calls))
	for i := range calls {
		rs[i] = tools.Fail("no")
	}
	return rs, nil
}

func TestRunStops(t *testing.T) {
	call := reply("working", model.FinishToolCalls, "a {}")
	for _, tt := range []struct {
		name  string
		model *replies
		batch Batch
		edit  func(*Options)
		ctx   func() context.Context
		want  Stop
		text  string
		turns int
	}{
		{name: "answer", model: &replies{list: []model.Reply{call, say("done")}}, want: Completed, text: "done", turns: 2},
		{name: "max turns", model: &replies{list: []model.Reply{call}}, edit: func(o *Options) { o.MaxTurns = 4 }, want: MaxTurns, text: "working", turns: 5},
		{name: "stuck", model: &replies{list: []model.Reply{call}}, batch: fails, want: Stuck, text: "working", turns: 5},
		{name: "model error", model: &replies{err: &model.Error{Provider: "p", Status: 401, Message: "who"}}, want: ModelError},
		{name: "allowance spent twice", model: &replies{list: []model.Reply{reply("", model.FinishLength)}}, want: OutputLimit, turns: 2},
		{name: "allowance spent once", model: &replies{list: []model.Reply{reply("", model.FinishLength), say("done")}}, want: Completed, text: "done", turns: 2},
		{name: "answer cut", model: &replies{list: []model.Reply{reply("half an", model.FinishLength)}}, want: OutputLimit, text: "half an", turns: 1},
		{name: "allowance spent, no more to give", model: &replies{list: []model.Reply{reply("", model.FinishLength)}}, edit: func(o *Options) { o.Largest = 100 }, want: OutputLimit, turns: 1},
		{name: "filtered", model: &replies{list: []model.Reply{{Message: say("half a sent").Message, Finish: model.FinishOther, Why: "content_filter"}}}, want: ModelError, text: "half a sent", turns: 1},
		{name: "refusal", model: &replies{list: []model.Reply{{Message: say("I will not").Message, Finish: model.FinishOther}}}, want: Completed, text: "I will not", turns: 1},
		{name: "nothing said", model: &replies{list: []model.Reply{call, say("")}}, want: ModelError, text: "working", turns: 2},
		{name: "a spent reply is no turn", model: &replies{list: []model.Reply{reply("", model.FinishLength), say("done")}}, edit: func(o *Options) { o.MaxTurns = 1 }, want: Completed, text: "done", turns: 2},
		{name: "check fails once", model: &replies{list: []model.Reply{say("done"), call, say("now")}}, edit: func(o *Options) { o.Check = failing(1) }, want: Completed, text: "now", turns: 3},
		{name: "check fails three times", model: &replies{list: []model.Reply{say("done")}}, edit: func(o *Options) { o.Check = failing(3) }, want: Completed, text: "done", turns: 4},
		{name: "check fails for good", model: &replies{list: []model.Reply{say("done")}}, edit: func(o *Options) { o.Check = failing(4) }, want: Stuck, text: "done", turns: 4},
		{name: "no turn is left to please the check", model: &replies{list: []model.Reply{say("done")}}, edit: func(o *Options) { o.Check, o.MaxTurns = failing(4), 2 }, want: MaxTurns, text: "done", turns: 3},
		{name: "a cut answer is not checked", model: &replies{list: []model.Reply{reply("half an", model.FinishLength)}}, edit: func(o *Options) { o.Check = failing(1) }, want: OutputLimit, text: "half an", turns: 1},
		{name: "budget", model: &replies{list: []model.Reply{call}}, edit: func(o *Options) { o.Budget = &grants{3} }, want: OverBudget, text: "working", turns: 4},
		{name: "cancelled", model: &replies{}, ctx: func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx
		}, want: Cancelled},
		{name: "timeout", model: &replies{}, ctx: func() context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(ErrTimeout)
			return ctx
		}, want: Timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended := 0
			o := Options{Ordinal: "0", Client: tt.model, Batch: ok, MaxTurns: 50, MaxTokens: 100, Record: func(p journal.Payload) {
				if _, is := p.(*journal.AgentEnded); is {
					ended++
				}
			}}
			if tt.batch != nil {
				o.Batch = tt.batch
			}
			if tt.edit != nil {
				tt.edit(&o)
			}
			ctx := t.Context()
			if tt.ctx != nil {
				ctx = tt.ctx()
			}
			talk := model.NewTranscript(tt.model, model.Message{Role: model.User, Text: "go", Raw: json.RawMessage(`"go"`)})
			out, err := Run(ctx, o, talk)
			if err != nil {
				t.Fatalf("Run = %v, want no error", err)
			}
			if out.Stop != tt.want || out.Text != tt.text || out.Turns != tt.turns {
				t.Errorf("Run = %s %q after %d turns, want %s %q after %d", out.Stop, out.Text, out.Turns, tt.want, tt.text, tt.turns)
			}
			if (out.Stop == Completed || out.Stop == Cancelled) != (out.Cause == "") { // who cancelled it gave no reason
				t.Errorf("cause of %s = %q", out.Stop, out.Cause)
			}
			if ended != 1 {
				t.Errorf("agent-ended was recorded %d times, want once", ended)
			}
			paired(t, talk.Messages())
		})
	}
}

// grants is a budget of so many calls.
type grants struct{ n int }

func (g *grants) Spend(model.Usage) {}

func (g *grants) Reserve(_ int64, closing bool) (func(model.Usage), error) {
	if g.n--; g.n < 0 && !closing {
		return nil, errors.New("stopped at its limit of 3 calls")
	}
	return func(model.Usage) {}, nil
}

// paired fails unless every call has its result before anything else is said.
func paired(t *testing.T, messages []model.Message) {
	t.Helper()
	var open []string
	for _, m := range messages {
		switch {
		case m.Role == model.ToolRole && len(open) > 0 && open[0] == m.CallID:
			open = open[1:]
		case m.Role == model.ToolRole || len(open) > 0:
			t.Fatalf("%s message where calls %v wait for results", m.Role, open)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %v have no result", open)
	}
}

func TestRunGrowsOnlyAtItsEnd(t *testing.T) {
	m := &replies{list: []model.Reply{reply("one", model.FinishToolCalls, "a {}", "b {}"), reply("two", model.FinishToolCalls, "c {}"), say("three")}}
	talk := model.NewTranscript(m)
	if err := talk.Append(model.Message{Role: model.User, Text: "go <b>"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Record: func(journal.Payload) {}}, talk); err != nil {
		t.Fatal(err)
	}
	var last string
	for i, req := range m.asked {
		var b strings.Builder
		for _, msg := range req.Messages {
			b.Write(msg.Raw)
			b.WriteByte('\n')
		}
		if !strings.HasPrefix(b.String(), last) {
			t.Errorf("request %d does not begin with the bytes of the one before:\n%s\nthen\n%s", i+1, last, b.String())
		}
		last = b.String()
	}
	if len(m.asked) != 3 {
		t.Errorf("asked %d times, want 3", len(m.asked))
	}
}

func TestRunAnswersEveryCallOfAFailedBatch(t *testing.T) {
	m := &replies{list: []model.Reply{reply("", model.FinishToolCalls, "a {}", "b {}")}}
	talk := model.NewTranscript(m)
	broken := errors.New("disk full")
	_, err := Run(t.Context(), Options{Client: m, MaxTurns: 9, Record: func(journal.Payload) {}, Batch: func(context.Context, []model.ToolCall) ([]tools.Result, error) {
		return []tools.Result{{Text: "first"}}, broken
	}}, talk)
	if !errors.Is(err, broken) {
		t.Fatalf("Run = %v, want %v", err, broken)
	}
	paired(t, talk.Messages())
}

func TestRepeatsTellThenStop(t *testing.T) {
	r := repeats{}
	c := model.ToolCall{Name: "bash", Args: `{"command":"x"}`}
	var told []int
	for i := 1; ; i++ {
		note, stuck := r.see(c, tools.Fail("no"))
		if note != "" {
			told = append(told, i)
		}
		if stuck {
			if i != stuckAfter || len(told) != 2 || told[0] != toldAfter {
				t.Errorf("told at %v, stuck at %d; want told at [3 4], stuck at 5", told, i)
			}
			break
		}
	}
	r.see(c, tools.Result{Text: "fine"})
	if _, stuck := r.see(c, tools.Fail("no")); stuck {
		t.Error("a success did not clear the count")
	}
	for range 2 * stuckAfter { // red, edit, red, edit, …
		if note, stuck := r.see(c, tools.Fail("red")); note != "" || stuck {
			t.Fatal("an edit in between did not clear the count")
		}
		r.see(model.ToolCall{Name: "search_replace", Args: "{}"}, tools.Result{Text: "edited", Acted: true})
		r.see(model.ToolCall{Name: "read_file", Args: "{}"}, tools.Result{Text: "read"})
	}
}

func TestUnknownUsageStaysUnknown(t *testing.T) {
	first := reply("", model.FinishToolCalls, "a {}")
	first.Usage.CacheRead = model.Count{}
	m := &replies{list: []model.Reply{first, say("done")}}
	out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Record: func(journal.Payload) {}}, model.NewTranscript(m))
	if err != nil {
		t.Fatal(err)
	}
	if out.Usage.CacheRead.Known || out.Usage.Input != model.Tokens(20) {
		t.Errorf("usage = %+v, want 20 input tokens and an unknown cache", out.Usage)
	}
}

// The figures of the spec's page 12: three calls, and a series of five.
func TestAccounting(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		in, hit                 []int64
		sum, cached, peak, last int64
		percent                 int64
	}{
		{"three calls", []int64{462, 4409, 4591}, []int64{0, 640, 4352}, 9462, 4992, 4591, 4591, 52},
		{"five calls", []int64{462, 4409, 4591, 1200, 1350}, []int64{0, 0, 0, 0, 0}, 12012, 0, 4591, 1350, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{}
			for i, in := range tt.in {
				r := reply("", model.FinishToolCalls, "a {}")
				if i == len(tt.in)-1 {
					r = say("done")
				}
				r.Usage = model.Usage{Input: model.Tokens(in - tt.hit[i]), CacheRead: model.Tokens(tt.hit[i]), Output: model.Tokens(2)}
				m.list = append(m.list, r)
			}
			out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Record: func(journal.Payload) {}}, model.NewTranscript(m))
			if err != nil {
				t.Fatal(err)
			}
			sum, cached := out.Usage.Prompt().N, out.Usage.CacheRead.N
			if sum != tt.sum || cached != tt.cached || out.Peak.N != tt.peak || out.Last.N != tt.last || cached*100/sum != tt.percent {
				t.Errorf("input %d, cached %d (%d%%), peak %d, last %d; want %d, %d (%d%%), %d, %d",
					sum, cached, cached*100/sum, out.Peak.N, out.Last.N, tt.sum, tt.cached, tt.percent, tt.peak, tt.last)
			}
		})
	}
}

// Of a reply that was cut, the last call may be half of what was meant: it is answered and
// not run. The ones before it are whole.
func TestACallThatWasCutIsNotRun(t *testing.T) {
	m := &replies{list: []model.Reply{reply("", model.FinishLength, "first {}", "second {}"), reply("", model.FinishLength, "only {}"), say("done")}}
	var ran []string
	talk := model.NewTranscript(m)
	out, err := Run(t.Context(), Options{Client: m, MaxTurns: 9, MaxTokens: 100, Record: func(journal.Payload) {}, Batch: func(ctx context.Context, calls []model.ToolCall) ([]tools.Result, error) {
		for _, c := range calls {
			ran = append(ran, c.Name)
		}
		return ok(ctx, calls)
	}}, talk)
	if err != nil || out.Stop != Completed {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if len(ran) != 1 || ran[0] != "first" {
		t.Errorf("ran %v, want the first call only", ran)
	}
	paired(t, talk.Messages())
	if last := talk.Messages()[2]; !last.IsError || !strings.Contains(last.Text, "cut at 100 tokens") {
		t.Errorf("result of the cut call = %+v", last)
	}
}

// retried is a model of which a call took a failed attempt.
type retried struct {
	*replies
	cost model.Usage
}

func (r retried) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	req.Attempt(model.Attempt{Number: 1, Err: errors.New("empty"), Usage: r.cost})
	return r.replies.Exchange(ctx, req)
}

func TestFailedAttemptsAreNotFree(t *testing.T) {
	cost := model.Usage{Input: model.Tokens(900), CacheRead: model.Tokens(0), CacheWrite: model.Tokens(0), Output: model.Tokens(80), Reasoning: model.Tokens(0)}
	for name, tt := range map[string]struct {
		cost model.Usage
		want model.Count
		part int64 // that is known
	}{"measured": {cost, model.Tokens(910), 910}, "broken": {model.Usage{}, model.Count{}, 10}, "refused": {model.NoUsage(), model.Tokens(10), 10}} {
		m := retried{&replies{list: []model.Reply{say("done")}}, tt.cost}
		out, err := Run(t.Context(), Options{Client: m, Batch: ok, MaxTurns: 9, Record: func(journal.Payload) {}}, model.NewTranscript(m))
		if err != nil || out.Usage.Input != tt.want || out.Counted.Input != model.Tokens(tt.part) || out.Last != model.Tokens(10) {
			t.Errorf("%s: input %v, counted %v, last %v, %v; want %v, %d and 10", name, out.Usage.Input, out.Counted.Input, out.Last, err, tt.want, tt.part)
		}
	}
}
