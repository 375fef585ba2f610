package agent

import (
	"context"
	"fmt"
)

// A Check finds out whether an agent may finish. It returns what is still wrong, with a first
// line that says it in short, or "". An error means that the harness itself failed.
type Check func(ctx context.Context) (wrong string, err error)

// checkMessages is how often the model is told that its check failed. If it fails once more
// the agent ends as stuck.
const checkMessages = 3

// check reports whether the agent may finish. If it may not, the agent has ended or its model
// has been told why.
func (a *loop) check(ctx context.Context) (bool, error) {
	if a.Check == nil {
		return true, nil
	}
	wrong, err := a.Check(ctx)
	switch {
	case ctx.Err() != nil:
		a.endContext(ctx)
		return false, nil
	case err != nil || wrong == "":
		return err == nil, err
	}
	if a.failed++; a.failed > checkMessages {
		a.end(Stuck, "its check still fails: "+firstLine(wrong))
		return false, nil
	}
	text := fmt.Sprintf("You cannot finish yet: a check failed. Correct what it says, then answer again; this is message %d of %d about it.\n%s", a.failed, checkMessages, wrong)
	return false, a.say(text)
}
