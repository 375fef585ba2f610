package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// A batch is all calls of one reply. Jobs write only their own entry of results; everything
// else is touched by the goroutine of the agent that asked, before the jobs start, when they
// settle, or after they ended.
type batch struct {
	*node
	before  []model.Message // the conversation up to the reply that asked
	calls   []model.ToolCall
	results []tools.Result
	names   map[*delegate.Delegation]string // ordinals of the children
	base    base
}

// batch carries out the calls of one reply; it is the agent's [agent.Batch].
func (n *node) batch(ctx context.Context, calls []model.ToolCall) ([]tools.Result, error) {
	n.reads.Next()
	talk := n.talk.Messages()
	b := &batch{
		node: n, before: talk[:len(talk)-1], calls: calls, results: make([]tools.Result, len(calls)),
		names: map[*delegate.Delegation]string{},
	}
	plan := delegate.Plan(calls)
	jobs := make([]scheduler.Job, len(calls))
	for i := range calls {
		jobs[i] = b.job(i, plan[i])
	}
	errs := n.run.sched.Do(ctx, jobs)
	for i, err := range errs {
		if fault := b.fault(ctx, i, err); fault != nil {
			return b.results, fault
		}
	}
	n.calls += len(calls)
	return b.results, nil
}

// job turns a call into a job. What must not run becomes a job that only settles its result,
// so that results are recorded in request order whatever they are.
func (b *batch) job(i int, d *delegate.Delegation) scheduler.Job {
	call := b.calls[i]
	tool, offered := b.tools[call.Name]
	switch {
	case call.Name == delegate.Name && b.run.delegates():
		return b.delegation(i, d)
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
	decision := b.policy.Decide(gate.Call{Tool: call.Name, Effect: effect, Boxed: b.place.ws.Exec != nil && !b.run.o.NoSandbox})
	if decision.Verdict == gate.Deny {
		return b.refuse(i, effect, "deny", decision.Reason)
	}
	b.note(i, effect, string(decision.Verdict), decision.Reason)
	return scheduler.Job{
		Effect: effect,
		Run:    func(ctx context.Context) error { return b.carryOut(ctx, i, tool, effect, decision) },
		Settle: func(context.Context) error { b.settled(i); return nil },
	}
}

// carryOut asks if it must, and runs the tool.
func (b *batch) carryOut(ctx context.Context, i int, tool tools.Tool, effect scheduler.Effect, decision gate.Decision) error {
	args := json.RawMessage(b.calls[i].Args)
	if decision.Verdict == gate.Ask {
		detail := b.calls[i].Args
		if p, ok := tool.(tools.Previewer); ok {
			text, err := p.Preview(ctx, b.place.ws, args)
			if err != nil { // the call would fail: nobody needs to be asked
				b.results[i] = tools.Failed(b.calls[i].Name, err)
				return nil
			}
			detail = text
		}
		ok, why := b.run.ask(ctx, b.ordinal, gate.Question{Agent: b.ordinal, Tool: tool.Spec().Name, Purpose: effect.String(), Detail: detail, Dir: b.place.ws.Path})
		if !ok {
			b.results[i] = tools.Fail(why)
			b.denied++
			return nil
		}
	}
	if effect != scheduler.Read {
		if err := b.run.journal.Barrier(); err != nil {
			return err
		}
	}
	var err error
	b.results[i], err = tool.Run(ctx, b.place.ws, args)
	return err
}

// refuse makes a job that only gives a result.
func (b *batch) refuse(i int, effect scheduler.Effect, decision, text string) scheduler.Job {
	b.note(i, effect, decision, text)
	b.results[i] = tools.Fail(text)
	if decision == "deny" {
		b.denied++
	}
	return scheduler.Job{
		Effect: scheduler.Read, // it touches nothing: siblings need not wait
		Run:    func(context.Context) error { return nil },
		Settle: func(context.Context) error { b.settled(i); return nil },
	}
}

// note records a call and what was decided on it.
func (b *batch) note(i int, effect scheduler.Effect, decision, reason string) {
	c := b.calls[i]
	b.record(&journal.Call{ID: c.ID, Tool: c.Name, Args: c.Args, Effect: effect.String(), Decision: decision, Reason: reason})
}

// settled records a result, which holds none of the secrets that the harness knows from here
// on: not in the journal, and not in what the model is shown.
func (b *batch) settled(i int) {
	if m := b.run.o.Mask; m != nil {
		b.results[i].Text = m.Known(b.results[i].Text)
	}
	r, c := b.results[i], b.calls[i]
	e := &journal.Result{ID: c.ID, Tool: c.Name, OK: !r.IsError, Text: r.Text}
	if r.Command != nil {
		e.Command, e.Exit = r.Command.Line, r.Command.Exit
		b.commands = append(b.commands, *r.Command)
	}
	b.record(e)
}

// fault makes a result of a job's error. It returns the error only if the run cannot go on.
func (b *batch) fault(ctx context.Context, i int, err error) error {
	var p *scheduler.PanicError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		b.record(&journal.Fault{Text: p.Error(), Stack: string(p.Stack)})
		b.results[i] = tools.Fail(fmt.Sprintf("%s: the harness failed on this call (%v); its effects are unknown, check before repeating it", b.calls[i].Name, p.Value))
	case ctx.Err() != nil:
		b.results[i] = tools.Fail(b.calls[i].Name + ": not finished: " + context.Cause(ctx).Error())
	default:
		b.results[i] = tools.Fail(b.calls[i].Name + ": " + err.Error())
		b.settled(i)
		return fmt.Errorf("carry out %s of agent %s: %w", b.calls[i].Name, b.ordinal, err)
	}
	b.settled(i)
	return nil
}
