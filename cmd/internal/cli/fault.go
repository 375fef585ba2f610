package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"skein/agent"
	"skein/cmd/internal/config"
	"skein/cmd/internal/face"
	"skein/cmd/internal/keys"
	"skein/cmd/internal/provider"
	"skein/orchestrator"
	"skein/tools/mask"
)

// The exit codes. Scripts depend on them.
const (
	exitOK          = 0
	exitFailed      = 1 // the model or the harness failed
	exitUsage       = 2
	exitStopped     = 3 // a limit, or want of an approval
	exitInterrupted = 130
)

const exitCodes = `Exit codes: 0 done · 1 the model or skein failed · 2 wrong usage · 3 a limit, or nobody to approve · 130 interrupted`

// A usageError is a fault of the command line: nothing was begun.
type usageError struct {
	command, text, hint string
}

func usage(c *cobra.Command, text, hint string) error {
	_, command, _ := strings.Cut(c.CommandPath(), " ")
	return &usageError{command: command, text: text, hint: hint}
}

func (e *usageError) Error() string {
	if e.command == "" {
		return e.text
	}
	return e.command + ": " + e.text
}

// Hint says how to call it.
func (e *usageError) Hint() string { return e.hint }

// misuse makes a fault of usage of what was found before anything was begun; other errors stay
// what they are.
func misuse(c *cobra.Command, err error) error {
	var file *config.Error
	var env *keys.Error
	var choice *provider.Fault
	switch {
	case errors.As(err, &file):
		return usage(c, file.Error(), file.Hint())
	case errors.As(err, &env):
		return usage(c, env.Error(), env.Hint())
	case errors.As(err, &choice):
		return usage(c, choice.Error(), choice.Hint())
	}
	return err
}

// A stopError is a run that ended in another way than completed, or without an approval that
// nobody could give. What it produced has been shown already.
type stopError struct {
	stop    agent.Stop
	cause   string
	err     error // the model's, for model-error
	unasked bool
	kept    int // changes
	// Whose changes are kept because nobody answered.
	unmerged []string
}

// ended returns the error for an outcome, nil for one to be content with.
func ended(o orchestrator.Outcome) error {
	if o.Stop == agent.Completed && !o.Unasked {
		return nil
	}
	return &stopError{stop: o.Stop, cause: o.Cause, err: o.Err, unasked: o.Unasked, unmerged: o.Unmerged, kept: o.Kept}
}

func (e *stopError) Error() string {
	switch {
	case e.stop == agent.Completed && len(e.unmerged) > 0:
		return "run: nobody answered whether to merge what " + strings.Join(e.unmerged, ", ") + " changed"
	case e.stop == agent.Completed:
		return "run: a call was refused because nobody answered"
	case e.cause == "":
		return "run: " + string(e.stop)
	}
	return "run: " + string(e.stop) + ": " + e.cause
}

// Unwrap returns what the model's provider said.
func (e *stopError) Unwrap() error { return e.err }

// Hint says what would let the run get further, and where the rest of what was done is.
func (e *stopError) Hint() string {
	if e.kept > 0 && e.stop != agent.Completed {
		return e.advice() + "; what was not merged is kept: skein worktrees list"
	}
	return e.advice()
}

func (e *stopError) advice() string {
	switch e.stop {
	case agent.Completed:
		if len(e.unmerged) > 0 {
			return "skein worktrees merge " + e.unmerged[0] + " brings it in; a run in a terminal asks before, one with --access auto does not"
		}
		return "answer in a terminal, within --ask-timeout; or run it with --access auto and, where that asks, a higher --confirm-usd"
	case agent.MaxTurns:
		return "raise --max-turns, or ask for less at once"
	case agent.OverBudget:
		return "raise --budget-tokens or --budget-usd, or ask for less at once"
	case agent.Timeout:
		return "raise --timeout, or ask for less at once"
	case agent.OutputLimit:
		return "raise --max-tokens"
	case agent.Stuck:
		return "see with --verbose what was tried, and say more exactly what is wanted"
	case agent.Cancelled:
		return "what was merged before stays in the folder; of unfinished writers nothing is in it"
	}
	if h := (interface{ Hint() string })(nil); errors.As(e.err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	return "see with --verbose what happened before, then run it again"
}

// code is the one place that turns errors into exit codes.
func code(err error) int {
	var bad *usageError
	var stopped *stopError
	var command *commandEnded
	var unasked *unaskedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &command):
		return command.exit
	case errors.As(err, &bad):
		return exitUsage
	case errors.As(err, &unasked):
		return exitStopped
	case errors.As(err, &stopped):
		switch stopped.stop {
		case agent.ModelError:
			return exitFailed
		case agent.Cancelled:
			return exitInterrupted
		}
		return exitStopped
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

// report tells the user of a command's error, in two lines, and returns the exit code.
func report(out io.Writer, c *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	if command := (*commandEnded)(nil); errors.As(err, &command) && command.text == "" {
		return command.exit
	}
	hint := "skein doctor tries what skein needs of this machine"
	if c.Flags().Lookup("verbose") != nil {
		hint = "run it again with --verbose to see more"
	}
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) && h.Hint() != "" {
		hint = h.Hint()
	} else if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == os.Stdout.Name() && errors.Is(at, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE) // who read it has seen enough, as of head
	}
	// What a server or a program said may hold a key.
	hide := mask.New(provider.Secrets(".", os.Environ()))
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	text, hint = string(hide.Written([]byte(text))), string(hide.Written([]byte(hint)))
	_, _ = fmt.Fprintf(out, "skein: %s\nskein: hint: %s\n", face.Line(text, 2000), face.Line(hint, 500))
	return code(err)
}
