package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"skein/agent/model"
)

// A Form is what a final answer must look like.
type Form struct {
	Schema json.RawMessage           // JSON Schema, as the provider is told it
	Check  func(answer string) error // says what is wrong with an answer; nil error: nothing
	Told   bool                      // the agent knows it from its task: an answer that fits is not asked for again
}

// formAttempts is how often the answer is asked for before the agent ends as stuck.
const formAttempts = 3

// fillIn asks for the final answer in its form after one that need not be, in further requests without
// tools: the provider holds the model to the schema where it can, and the answer is checked either
// way. Whoever never gets it right is shown with the answer that was refused last.
func (a *loop) fillIn(ctx context.Context) error {
	ask := "Give your final answer now as " + inForm(a.Form)
	for range formAttempts {
		if err := a.say(ask); err != nil {
			return err
		}
		reply, ok := a.ask(ctx, model.Request{Tools: a.Tools, NoCalls: true, MaxTokens: a.MaxTokens, Schema: a.Form.Schema})
		if !ok {
			return nil
		}
		if err := a.heed(reply); err != nil {
			return err
		}
		if strings.TrimSpace(reply.Message.Text) != "" {
			a.out.Text = reply.Message.Text
		}
		err := a.Form.Check(reply.Message.Text)
		if err == nil {
			a.end(Completed, "")
			return nil
		}
		ask = fmt.Sprintf("That is not valid: %v. Give the final answer again, as one JSON value and nothing else.", err)
		a.out.Cause = err.Error()
	}
	a.end(Stuck, "the final answer does not fit the schema: "+a.out.Cause)
	return nil
}

// inForm says what an answer must be like.
func inForm(f *Form) string {
	return "one JSON value, valid against this schema and with nothing around it: " + string(f.Schema)
}

// last is the message that was appended last.
func (a *loop) last() model.Message {
	all := a.t.Messages()
	return all[len(all)-1]
}
