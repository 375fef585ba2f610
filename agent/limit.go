package agent

import (
	"context"
	"fmt"
	"strings"

	"skein/agent/journal"
	"skein/agent/model"
)

// A Budget is what an agent may spend, of its own and together with others.
type Budget interface {
	// Reserve asks for a model call that will read about so many tokens. If it is granted,
	// done must be called with the usage once the call has ended. The error says at which
	// limit the agent is stopped. A closing call may pass a limit; it is refused to an agent
	// of which a reply has passed one already.
	Reserve(tokens int64, closing bool) (done func(model.Usage), err error)

	// Spend counts what a failed attempt of a call cost.
	Spend(model.Usage)
}

// fewTurns is how many replies an agent must have for a warning to leave it time for anything.
const fewTurns = 5

// warning tells the model, once for each limit, that four fifths of it are used.
func (a *loop) warning() string {
	var used []string
	if !a.warned && a.MaxTurns >= fewTurns && 5*a.turn >= 4*a.MaxTurns && a.turn < a.MaxTurns {
		a.warned = true
		used = append(used, fmt.Sprintf("%d of your %d turns", a.turn, a.MaxTurns))
	}
	if a.Near != nil {
		used = append(used, a.Near()...)
	}
	if len(used) == 0 {
		return ""
	}
	return "Used so far: " + strings.Join(used, ", ") + ". Finish now, or report what you have."
}

// conclude is the closing turn of an agent that a limit stopped: one request without calls, for
// what it has so far. Whatever comes of it, the stop is the limit's. Who has said nothing yet
// has nothing to report.
func (a *loop) conclude(ctx context.Context) error {
	stop, cause := a.out.Stop, a.out.Cause
	switch stop {
	case MaxTurns, OverBudget, Timeout:
	default:
		return nil
	}
	if a.out.Turns == 0 || ctx.Err() != nil {
		return nil
	}
	ask := "Your work is " + cause + ". This is your last reply, without a call of a tool. "
	req := model.Request{Tools: a.Tools, NoCalls: true, MaxTokens: a.MaxTokens}
	if a.Form == nil {
		ask += "Report now: what was done, what was found, what is missing."
	} else {
		ask += "Give what you have as " + inForm(a.Form)
		req.Schema = a.Form.Schema
	}
	if err := a.say(ask); err != nil {
		return err
	}
	a.closing = true
	reply, ok := a.exchange(ctx, req)
	a.end(stop, cause)
	a.out.Err = nil
	if !ok || spent(reply) {
		return nil
	}
	if err := a.heed(reply); err != nil {
		return err
	}
	if strings.TrimSpace(reply.Message.Text) == "" {
		return nil
	}
	a.out.Text = reply.Message.Text
	if a.Form != nil {
		if err := a.Form.Check(a.out.Text); err != nil {
			a.out.Cause += "; its last answer does not fit the schema: " + err.Error()
		}
	}
	return nil
}

// say adds a message of the harness to the conversation.
func (a *loop) say(text string) error {
	if err := a.t.Append(model.Message{Role: model.User, Text: text}); err != nil {
		return err
	}
	a.Record(&journal.Message{Message: a.last()})
	return nil
}

// heed adds a reply to the conversation that was to call nothing; what it calls all the same is
// not run.
func (a *loop) heed(reply model.Reply) error {
	if err := a.t.Append(reply.Message); err != nil {
		return err
	}
	for _, c := range reply.Message.Calls {
		if err := a.t.Append(model.Message{Role: model.ToolRole, CallID: c.ID, Name: c.Name, Text: "not run: only the final answer is wanted", IsError: true}); err != nil {
			return err
		}
		a.Record(&journal.Message{Message: a.last()})
	}
	return nil
}

func turns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}
