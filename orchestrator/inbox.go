package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools"
	"skein/tools/gate"
)

// An inbox takes the questions of all agents of a run and puts them to a person one at a time,
// the oldest first. Who asks waits; all others go on.
type inbox struct {
	asker gate.Asker    // nil: nobody can be asked
	time  time.Duration // that a person has for an answer, from when the question is put

	turn *semaphore.Weighted // has one place, for the question that is put; first come, first served

	// Who has the turn owns this.
	granted map[question]bool // what the person wants to be asked no more
}

// A question is what two questions have in common that are the same to a person.
type question struct{ tool, purpose, detail, dir string }

func newInbox(asker gate.Asker, d time.Duration) *inbox {
	return &inbox{asker: asker, time: d, turn: semaphore.NewWeighted(1), granted: map[question]bool{}}
}

// Why there is no answer.
var (
	errNobody = errors.New("nobody could be asked")
	errLate   = errors.New("no answer in time")
)

// saidNo is what a person's no is told as; a reason follows it.
const saidNo = "the user said no"

// Who answered, as events say it.
const (
	byUser    = "user"
	byEarlier = "user, earlier" // who wanted to be asked no more
	byNobody  = "nobody"
)

// ask puts a question. An error means that there is no answer: [errNobody], [errLate], the cause
// of ctx, or that of the asker.
func (i *inbox) ask(ctx context.Context, q gate.Question) (a gate.Answer, by string, err error) {
	if i.asker == nil {
		return a, byNobody, errNobody
	}
	if i.turn.Acquire(ctx, 1) != nil {
		return a, byNobody, context.Cause(ctx)
	}
	defer i.turn.Release(1)
	same := question{q.Tool, q.Purpose, q.Detail, q.Dir}
	if i.granted[same] {
		return gate.Answer{Granted: true}, byEarlier, nil
	}
	open, cancel := context.WithTimeoutCause(ctx, i.time, errLate)
	defer cancel()
	if a, err = i.asker.Ask(open, q); err != nil {
		if open.Err() != nil {
			err = context.Cause(open)
		}
		return gate.Answer{}, byNobody, err
	}
	i.granted[same] = a.Granted && a.Again
	return a, byUser, nil
}

// A verdict is what became of a question.
type verdict struct {
	granted bool
	why     string // it was not
	unasked bool   // since nobody gave an answer
}

// told is why, in words for a model.
func (v verdict) told() string {
	if v.unasked {
		return v.why + delegate.GoOn
	}
	return v.why
}

// ask puts a question of the agent's to a person; without an answer it is no. Waiting is not the
// agent's own time.
func (n *node) ask(ctx context.Context, q gate.Question) verdict {
	defer n.clocks.wait()()
	answer, by, err := n.run.inbox.ask(ctx, q)
	why, unasked := "", false
	switch {
	case errors.Is(err, errNobody):
		why, unasked = "nobody could be asked: this run has no terminal", true
	case errors.Is(err, errLate):
		why, unasked = "the user did not answer in time, and the question is withdrawn", true
	case ctx.Err() != nil:
		why = "not answered: " + whyEnded(ctx)
	case err != nil:
		why = "the question could not be asked"
	case !answer.Granted:
		why = saidNo
		if answer.Reason != "" {
			why += ": " + answer.Reason
		}
	}
	if unasked {
		n.run.unasked.Store(true)
	}
	n.record(&journal.Approval{About: q.Tool + ": " + q.Purpose, For: q.Agent, By: by, Granted: answer.Granted, Again: answer.Again, Reason: why})
	return verdict{answer.Granted, why, unasked}
}

// askCall asks about a call. If it must not run, its outcome says why.
func (b *batch) askCall(ctx context.Context, i int, tool tools.Tool, effect scheduler.Effect) bool {
	o, call := &b.outcomes[i], b.calls[i]
	detail, err := b.preview(ctx, tool, call)
	if err != nil { // the call would fail: nobody needs to be asked
		o.result = tools.Failed(call.Name, err)
		return false
	}
	if why := b.denied.enough(call); why != "" {
		o.result, o.denied = tools.Fail(why), true
		return false
	}
	v := b.ask(ctx, gate.Question{
		Agent: b.ordinal, Title: b.title, Tool: call.Name, Purpose: b.purpose(call.Name, effect), Detail: detail, Dir: b.place.ws.Path,
	})
	if !v.granted {
		o.result, o.denied = tools.Fail(v.told()), ctx.Err() == nil
		return false
	}
	// A person takes time, and may have changed the file meanwhile: yes was said to what was shown.
	if now, err := b.preview(ctx, tool, call); err != nil || now != detail {
		o.result = tools.Fail(call.Name + ": not run: what it would do has changed since the user was asked. Look at the files as they are now, then call it again")
		return false
	}
	return true
}

// preview is what a person is shown of a call.
func (b *batch) preview(ctx context.Context, tool tools.Tool, call model.ToolCall) (string, error) {
	if p, ok := tool.(tools.Previewer); ok {
		return p.Preview(ctx, b.place.ws, json.RawMessage(call.Args))
	}
	return call.Args, nil
}

// purpose is what a call is for, in the words of a question. A copy is shown at the path of the
// user's tree, where the same words may not be granted by what was said of the copy.
func (n *node) purpose(tool string, effect scheduler.Effect) string {
	where := ""
	if n.policy.Isolated {
		where = " in its copy"
	}
	switch {
	case n.run.isOwn(tool):
		return "call a tool of this program, outside of any box"
	case effect != scheduler.Execute:
		return "change a file" + where
	case n.boxed():
		return "run a command" + where
	}
	return "run a command outside of a box"
}
