// Package agent is the loop of one agent: ask the model, carry out the calls of its reply,
// append the results, ask again, until it answers without a call or a limit ends it.
//
// The loop knows nothing of concurrency, permission or children: those are layers behind
// [Batch], which carries out all calls of one reply.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/tools"
)

// Stop is why an agent ended.
type Stop string

// The reasons, as in events and reports.
const (
	Completed   Stop = "completed"
	MaxTurns    Stop = "max-turns"
	OverBudget  Stop = "budget"
	Timeout     Stop = "timeout"
	Stuck       Stop = "stuck"
	OutputLimit Stop = "output-limit"
	ModelError  Stop = "model-error"
	Cancelled   Stop = "cancelled"
	Failed      Stop = "failed" // the harness failed
)

// ErrTimeout is the cause of a context that ended because the agent's time was up. A cause that
// wraps it says which time in its own words.
var ErrTimeout = errors.New("time limit reached")

// An End is the cause of a context that ended so that its agent ends in this way.
type End struct {
	Stop  Stop
	Cause string
}

func (e *End) Error() string { return string(e.Stop) + ": " + e.Cause }

// Ended says how an agent ends whose context has ended, and why if somebody said so.
func Ended(ctx context.Context) (Stop, string) {
	cause := context.Cause(ctx)
	if end, ok := errors.AsType[*End](cause); ok {
		return end.Stop, end.Cause
	}
	if errors.Is(cause, ErrTimeout) {
		return Timeout, cause.Error()
	}
	return Cancelled, ""
}

// A Batch carries out all tool calls of one reply. Results come back in the order of the
// calls, one for each, whatever ran first. An error means that the harness itself failed.
type Batch func(ctx context.Context, calls []model.ToolCall) ([]tools.Result, error)

// Options is what one agent works with.
type Options struct {
	Ordinal string
	Client  model.Client
	Tools   json.RawMessage // as encoded by Client; nil offers none
	Batch   Batch
	Budget  Budget // nil: no limit

	// Near says, in words for the model, of which limits besides MaxTurns four fifths are used
	// that it did not name before; nil: of none.
	Near func() []string

	// Work gives the context of the agent's work, from the one given to Run. It may end with
	// [ErrTimeout] before that one: the closing turn has the time between. The function it
	// returns is called when the work is over, before a closing turn. nil: the same.
	Work func(context.Context) (context.Context, context.CancelFunc)

	MaxTurns  int   // replies
	MaxTokens int   // of one reply
	Largest   int   // tokens that the model can write at most, 0 if that is not known
	Check     Check // before it may finish; nil asks for none
	Form      *Form // of the final answer; nil leaves it free
	Record    func(journal.Payload)
}

// An Outcome is how an agent ended.
type Outcome struct {
	Stop  Stop
	Cause string // in words, for every stop but completed; of cancelled only if somebody said why
	Err   error  // the model's error, for model-error
	Text  string // the last text of the model; at a limit, the report of its closing turn
	Turns int
	Usage model.Usage // of all its calls
	Peak  model.Count // tokens of the largest input of a call
	Last  model.Count // tokens of the last call's input

	// Of those of its calls of which input and output are known: Usage is no less.
	Counted model.Usage
}

// Run drives the conversation t to its end. It returns an error only if the harness failed;
// everything that the model, its provider or a limit did is in the Outcome. Whatever the
// end, every tool call in t has its result.
func Run(ctx context.Context, o Options, t *model.Transcript) (Outcome, error) {
	a := &loop{Options: o, t: t, out: Outcome{Usage: model.NoUsage(), Counted: model.NoUsage(), Peak: model.Tokens(0), Last: model.Tokens(0)}, repeats: repeats{}}
	work, stop := ctx, context.CancelFunc(func() {})
	if o.Work != nil {
		work, stop = o.Work(ctx)
	}
	err := a.run(ctx, work)
	stop()
	if err == nil {
		err = a.conclude(ctx)
	}
	if err != nil {
		a.end(Failed, err.Error())
	}
	o.Record(&journal.AgentEnded{Stop: string(a.out.Stop), Cause: a.out.Cause, Text: a.out.Text, Turns: a.out.Turns, Usage: a.out.Usage, Counted: a.out.Counted, Peak: a.out.Peak, Last: a.out.Last})
	return a.out, err
}

type loop struct {
	Options
	t       *model.Transcript
	out     Outcome
	repeats repeats
	failed  int   // checks that failed
	turn    int   // of MaxTurns
	warned  bool  // of MaxTurns
	closing bool  // this is the closing turn
	known   int64 // tokens of the conversation up to message number seen
	seen    int
}

// run works until there is an answer or a limit. The first reply has all the time that there is:
// without it there is nothing to report.
func (a *loop) run(ctx, work context.Context) error {
	for a.turn = 1; a.turn <= a.MaxTurns; a.turn++ {
		reply, ok := a.ask(ctx, model.Request{Tools: a.Tools, MaxTokens: a.MaxTokens})
		if !ok {
			return nil
		}
		ctx = work
		if err := a.t.Append(reply.Message); err != nil {
			return err
		}
		if reply.Message.Text != "" {
			a.out.Text = reply.Message.Text
		}
		if len(reply.Message.Calls) == 0 {
			if err := a.answered(ctx, reply); err != nil || a.out.Stop != "" {
				return err
			}
			continue
		}
		if err := a.act(ctx, reply); err != nil || a.out.Stop != "" {
			return err
		}
	}
	a.end(MaxTurns, "stopped at its limit of "+turns(a.MaxTurns))
	return nil
}

// answered ends the agent after a reply without calls, unless its check fails.
func (a *loop) answered(ctx context.Context, reply model.Reply) error {
	switch {
	case reply.Finish == model.FinishLength:
		a.end(OutputLimit, fmt.Sprintf("the reply was cut at %d tokens", a.MaxTokens))
	case reply.Finish == model.FinishOther && reply.Why != "":
		a.end(ModelError, "the provider ended the reply: "+reply.Why)
	case reply.Message.Text == "":
		// What it said along with earlier calls is no answer.
		a.end(ModelError, "the model ended with an empty reply")
	default:
		if ok, err := a.check(ctx); !ok {
			return err
		}
		if a.Form != nil && (!a.Form.Told || a.Form.Check(reply.Message.Text) != nil) {
			return a.fillIn(ctx)
		}
		a.end(Completed, "")
	}
	return nil
}

// act has the calls carried out and appends one result for each. Even a batch that failed
// leaves the conversation in a form that a provider accepts.
func (a *loop) act(ctx context.Context, reply model.Reply) error {
	calls := reply.Message.Calls
	run := calls
	if reply.Finish == model.FinishLength {
		run = calls[:len(calls)-1] // the last one may be half of what was meant
	}
	var results []tools.Result
	var failed error
	if len(run) > 0 {
		results, failed = a.Batch(ctx, run)
	}
	for i, c := range calls {
		r, told := tools.Fail("not run: the harness failed"), false
		switch {
		case i < len(results):
			r, told = results[i], true
		case i == len(run):
			r = tools.Fail(fmt.Sprintf("%s: not run: the reply was cut at %d tokens, in or behind this call. Call it again, with less in one call", c.Name, a.MaxTokens))
		}
		note, stuck := a.repeats.see(c, r)
		if stuck {
			a.end(Stuck, fmt.Sprintf("the same %s call failed %d times: %s", c.Name, stuckAfter, firstLine(r.Text)))
		}
		if i == len(calls)-1 && !stuck {
			note = strings.TrimSpace(note + "\n" + a.warning())
		}
		if note != "" {
			r.Text, told = r.Text+"\n"+note, false
		}
		m := model.Message{Role: model.ToolRole, CallID: c.ID, Name: c.Name, Text: r.Text, IsError: r.IsError}
		if err := a.t.Append(m); err != nil {
			return err
		}
		if !told { // no result event holds this text
			a.Record(&journal.Message{Message: a.last()})
		}
	}
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		a.endContext(ctx)
	}
	return nil
}

// ask gets one reply. It reports false if there is none and the agent has ended.
func (a *loop) ask(ctx context.Context, req model.Request) (model.Reply, bool) {
	reply, ok := a.exchange(ctx, req)
	if !ok || !spent(reply) {
		return reply, ok
	}
	// The allowance went into reasoning: there is nothing to keep, so the conversation stays
	// as it is and the model gets twice the room, once, as far as it can write that much.
	limit := req.MaxTokens
	if req.MaxTokens *= 2; a.Largest > 0 {
		req.MaxTokens = min(req.MaxTokens, a.Largest)
	}
	if req.MaxTokens <= limit {
		a.end(OutputLimit, fmt.Sprintf("%d tokens were spent without a word of answer, and the model can write no more", limit))
		return model.Reply{}, false
	}
	a.Record(&journal.Notice{Text: fmt.Sprintf("agent %s: the reply limit was spent without an answer; asking again with %d tokens", a.Ordinal, req.MaxTokens)})
	if reply, ok = a.exchange(ctx, req); ok && spent(reply) {
		a.end(OutputLimit, fmt.Sprintf("%d tokens were spent without a word of answer", req.MaxTokens))
		return model.Reply{}, false
	}
	return reply, ok
}

// spent reports whether a reply used up its allowance and says nothing.
func spent(r model.Reply) bool {
	return r.Finish == model.FinishLength && r.Message.Text == "" && len(r.Message.Calls) == 0
}

// exchange sends the conversation as it stands and records the reply. It reports false if
// there is none and the agent has ended.
func (a *loop) exchange(ctx context.Context, req model.Request) (model.Reply, bool) {
	messages := a.t.Messages()
	reading := a.estimate(messages)
	done := func(model.Usage) {}
	if a.Budget != nil {
		var err error
		if done, err = a.Budget.Reserve(reading, a.closing); err != nil {
			a.end(OverBudget, err.Error())
			return model.Reply{}, false
		}
	}
	req.Messages, req.Origin = messages, model.Origin{Agent: a.Ordinal, Turn: a.out.Turns + 1}
	req.Attempt = func(t model.Attempt) {
		a.add(t.Usage)
		if a.Budget != nil {
			a.Budget.Spend(t.Usage)
		}
		a.Record(&journal.Attempt{Turn: req.Origin.Turn, Number: t.Number, Error: t.Err.Error(), Wait: t.Wait.Seconds()})
	}
	reply, err := a.Client.Exchange(ctx, req)
	if err != nil {
		// What a failed call cost is known if the server refused it, else it is unknown, and
		// so are the sums from here on: never smaller than they should be.
		var cost model.Usage
		if e := (*model.Error)(nil); errors.As(err, &e) {
			cost = e.Usage
		}
		done(cost)
		a.add(cost)
		if ctx.Err() != nil {
			a.endContext(ctx)
		} else {
			a.out.Err = err
			a.end(ModelError, err.Error())
		}
		return model.Reply{}, false
	}
	done(taken(reply, reading))
	a.out.Turns++
	a.count(reply.Usage)
	if p := reply.Usage.Prompt().Plus(reply.Usage.Output); p.Known && reply.Usage.Prompt().N > 0 {
		a.known, a.seen = p.N, len(messages)+1
	}
	a.Record(&journal.Reply{Turn: a.out.Turns, Message: reply.Message, Finish: reply.Finish, Usage: reply.Usage, Dropped: spent(reply)})
	return reply, true
}

// taken is what a reply takes from a budget. Where its provider gives no figures, or zeros, as some
// servers do, it is what the call was to read, and a quarter of the reply's bytes: it was not free.
func taken(r model.Reply, reading int64) model.Usage {
	u := r.Usage
	if u.Prompt().N == 0 {
		u.Input, u.CacheRead, u.CacheWrite = model.Tokens(reading), model.Tokens(0), model.Tokens(0)
	}
	if u.Output.N == 0 {
		u.Output = model.Tokens(int64(len(r.Message.Raw)) / 4)
	}
	return u
}

// add sums up what calls took, and their attempts.
func (a *loop) add(u model.Usage) {
	a.out.Usage = a.out.Usage.Plus(u)
	if u.Prompt().Plus(u.Output).Known {
		a.out.Counted = a.out.Counted.Plus(u)
	}
}

// count takes note of a reply's usage.
func (a *loop) count(u model.Usage) {
	a.add(u)
	a.out.Last = u.Prompt()
	a.out.Peak = a.out.Peak.Max(a.out.Last)
}

// estimate is the size of the next request in tokens: what the last reply's usage says, and
// a quarter of the bytes that came since.
func (a *loop) estimate(messages []model.Message) int64 {
	n := a.known
	if a.seen == 0 {
		n = int64(len(a.Tools)) / 4
	}
	for _, m := range messages[min(a.seen, len(messages)):] {
		n += int64(len(m.Raw)) / 4
	}
	return n
}

func (a *loop) end(s Stop, cause string) { a.out.Stop, a.out.Cause = s, cause }

func (a *loop) endContext(ctx context.Context) { a.end(Ended(ctx)) }
