package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// A batch is all calls of one reply. Jobs write only their own entry of outcomes; everything
// else is touched by the goroutine of the agent that asked, before the jobs start, when they
// settle, or after they ended.
type batch struct {
	*node
	before   []model.Message // the conversation up to the reply that asked
	calls    []model.ToolCall
	outcomes []outcome
	recorded int // results recorded so far
	children map[*delegate.Delegation]*child
	base     base
	endings  int // see [Control.ended]
}

// An outcome is what became of one call.
type outcome struct {
	result tools.Result
	denied bool  // by the gate or by a person
	failed error // the harness failed; the result says so
	ended  bool  // the job ended by itself: the result stands
	child  *child
}

// batch carries out the calls of one reply; it is the agent's [agent.Batch].
func (n *node) batch(ctx context.Context, calls []model.ToolCall) ([]tools.Result, error) {
	n.reads.Next()
	talk := n.talk.Messages()
	b := &batch{
		endings: n.run.control.ended(),
		node:    n, before: talk[:len(talk)-1], calls: calls, outcomes: make([]outcome, len(calls)),
		children: map[*delegate.Delegation]*child{},
	}
	jobs := make([]scheduler.Job, len(calls))
	for i := range calls {
		jobs[i] = b.job(i)
	}
	b.confirm(ctx, jobs)
	if b.announce() {
		// Waiting for children is not the agent's own time.
		defer n.clocks.wait()()
	}
	errs := n.run.sched.Do(ctx, jobs)
	b.recordUpTo(ctx, len(calls))
	results := make([]tools.Result, len(calls))
	var failed error
	for i, o := range b.outcomes {
		results[i] = o.result
		var p *scheduler.PanicError
		if errors.As(errs[i], &p) {
			b.record(&journal.Fault{Text: p.Error(), Stack: string(p.Stack)})
		} else if failed == nil && o.failed != nil {
			failed = fmt.Errorf("carry out %s of agent %s: %w", calls[i].Name, n.ordinal, o.failed)
		}
	}
	n.calls += len(calls)
	if n.quit != nil && n.denied.end != nil {
		n.quit(n.denied.end)
	}
	return results, failed
}

// job turns a call into a job. What must not run becomes a job that only settles its result,
// so that results are recorded in request order whatever they are.
func (b *batch) job(i int) scheduler.Job {
	call := b.calls[i]
	tool, offered := b.tools[call.Name]
	switch {
	case call.Name == delegate.Name && b.run.delegates():
		return b.delegation(i)
	case !offered:
		return b.refuse(i, scheduler.Execute, "invalid", fmt.Sprintf("unknown tool %q: it was not offered. Use one of: %s", call.Name, strings.Join(b.run.names(), ", ")))
	}
	args := json.RawMessage(call.Args)
	if c, ok := tool.(tools.Checker); ok {
		if err := c.Check(args); err != nil {
			return b.refuse(i, tool.Effect(args), "invalid", tools.Failed(call.Name, err).Text)
		}
	}
	effect := tool.Effect(args)
	decision := b.policy.Decide(gate.Call{
		Tool: call.Name, Effect: effect, Boxed: b.boxed(), Outside: b.run.isOwn(call.Name),
	})
	if decision.Verdict == gate.Deny {
		return b.refuse(i, effect, "deny", decision.Reason)
	}
	b.note(i, effect, string(decision.Verdict), decision.Reason)
	return scheduler.Job{
		Effect: effect,
		Run:    func(ctx context.Context) error { b.carryOut(ctx, i, tool, effect, decision); return nil },
		Settle: b.settle(i),
	}
}

// refuse makes a job that only gives a result.
func (b *batch) refuse(i int, effect scheduler.Effect, decision, text string) scheduler.Job {
	b.note(i, effect, decision, text)
	b.outcomes[i] = outcome{result: tools.Fail(text), denied: decision == "deny"}
	return b.only(i)
}

// only makes the job of a call whose result is there.
func (b *batch) only(i int) scheduler.Job {
	return scheduler.Job{
		Effect: scheduler.Read, // it touches nothing: siblings need not wait
		Run:    func(context.Context) error { return nil },
		Settle: b.settle(i),
	}
}

// settle makes the step that records a call's result.
func (b *batch) settle(i int) func(context.Context) error {
	return func(ctx context.Context) error {
		b.outcomes[i].ended = true
		b.recordUpTo(ctx, i+1)
		return nil
	}
}

// carryOut asks if it must, and runs the tool.
func (b *batch) carryOut(ctx context.Context, i int, tool tools.Tool, effect scheduler.Effect, decision gate.Decision) {
	o, call := &b.outcomes[i], b.calls[i]
	args := json.RawMessage(call.Args)
	if decision.Verdict == gate.Ask && !b.askCall(ctx, i, tool, effect) {
		return
	}
	acts := effect != scheduler.Read && b.policy.Access != gate.ReadOnly && !b.policy.Reader
	if acts {
		if err := b.run.journal.Barrier(); err != nil {
			o.result = tools.Fail(call.Name + ": not run: " + unsaved)
			return
		}
	}
	r, err := tool.Run(ctx, b.place.ws, args)
	switch {
	case err == nil:
		r.Acted = acts
		o.result = r
	case ctx.Err() != nil:
		o.result = tools.Fail(unfinished(ctx, call.Name))
	default:
		o.result, o.failed = tools.Fail(call.Name+": the harness failed"), err
	}
}

// unsaved is why nothing may change while the journal cannot be written.
const unsaved = "the session's journal cannot be saved, and nothing may be changed that is not in it. Tell the user"

// unfinished tells that a call did not come to its end.
func unfinished(ctx context.Context, name string) string {
	return name + ": not finished: " + whyEnded(ctx)
}

// whyEnded is why a context ended, in words.
func whyEnded(ctx context.Context) string {
	stop, cause := agent.Ended(ctx)
	return cmp.Or(cause, string(stop))
}

// note records a call and what was decided on it.
func (b *batch) note(i int, effect scheduler.Effect, decision, reason string) {
	c := b.calls[i]
	b.record(&journal.Call{ID: c.ID, Tool: c.Name, Args: c.Args, Effect: effect.String(), Decision: decision, Reason: reason})
}

// recordUpTo records the results of the first n calls, in request order. A call before them
// whose job has not settled by then never will: it panicked, or the batch ended before it.
// From here on a result holds none of the secrets that the harness knows, and is not longer
// than a model should be shown, whatever the tool thought of that.
func (b *batch) recordUpTo(ctx context.Context, n int) {
	for ; b.recorded < n; b.recorded++ {
		o, c := &b.outcomes[b.recorded], b.calls[b.recorded]
		if !o.ended {
			o.result = tools.Fail(c.Name + ": the harness failed on this call; its effects are unknown, check before you repeat it")
			if ctx.Err() != nil {
				o.result = tools.Fail(unfinished(ctx, c.Name))
			}
			if o.child != nil {
				b.unsettled(ctx, o.child)
			}
		}
		if m := b.run.o.Mask; m != nil {
			o.result.Text = m.Cut(m.Known(o.result.Text))
		}
		o.result.Text = cut(o.result.Text)
		e := &journal.Result{ID: c.ID, Tool: c.Name, OK: !o.result.IsError, Text: o.result.Text}
		if r := o.result.Command; r != nil {
			e.Command, e.Exit = r.Line, r.Exit
			b.commands = append(b.commands, *r)
		}
		if o.denied {
			b.denied.add(c, o.result.Text)
		}
		b.acted = b.acted || o.result.Acted && !o.result.IsError
		b.record(e)
	}
}

// A result's text is at most resultBytes long; of a longer one the head and the tail are
// shown. Tools have tighter limits of their own: this one is for texts that nobody expected
// to be long, such as an error that repeats an argument.
const (
	resultBytes = 50_000
	headBytes   = 4096
	tailBytes   = 6144
)

func cut(text string) string {
	if len(text) <= resultBytes {
		return text
	}
	head, tail := text[:headBytes], text[len(text)-tailBytes:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[… %d bytes cut …]\n", len(text)-headBytes-tailBytes) + strings.ToValidUTF8(tail, "")
}
