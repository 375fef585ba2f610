package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/sandbox"
	"skein/tools"
	"skein/tools/gate"
	"skein/worktree"
)

const (
	// verifyTime bounds one run of a check: a test suite may take long, a command that waits
	// for something must end.
	verifyTime = 10 * time.Minute

	// verifyChars is how much of a check's output is shown, from its end.
	verifyChars = 4000

	// verifyBytes is how much of it is kept. Half of that is of the end.
	verifyBytes = 16 * verifyChars
)

// A finding is what a check said.
type finding struct {
	tools.Command
	output string // its end
}

// String is the command and how it ended, in one line.
func (f finding) String() string {
	if f.Killed != "" {
		return fmt.Sprintf("%s (%s)", f.Line, f.Killed)
	}
	return fmt.Sprintf("%s (exit %d)", f.Line, f.Exit)
}

// wrong is what a model is told of a check that failed, "" of one that did not.
func (f finding) wrong() string {
	if f.Exit == 0 && f.Killed == "" {
		return ""
	}
	return f.String() + "\n" + f.output
}

// try runs a check in a place. A check that could not be started has failed: the error says why,
// unless ctx ended.
func (r *run) try(ctx context.Context, p *place, line string) (finding, error) {
	out, err := p.ws.Exec.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", line}, Timeout: verifyTime, Merge: true, Limit: verifyBytes})
	if err != nil {
		return finding{}, fmt.Errorf("run %s: %w", line, err)
	}
	text := p.relative(strings.ToValidUTF8(string(out.Combined), "\uFFFD"))
	if m := r.o.Mask; m != nil {
		text = m.Cut(m.Known(text))
	}
	if chars := []rune(text); len(chars) > verifyChars {
		text = "[…]\n" + string(chars[len(chars)-verifyChars:])
	}
	return finding{tools.Command{Line: line, Exit: out.Exit, Killed: out.Killed}, text}, nil
}

// relative makes names of files of a copy in a text relative to its workspace. Without a box a
// copy is seen where it lies, which is another path for each, and what models are shown of a check
// should be the same each time.
func (s site) relative(text string) string {
	if s.copy == nil || s.view != s.root {
		return text
	}
	up, err := filepath.Rel(s.path(), s.root)
	if err != nil {
		return text // cannot be: one is below the other
	}
	return strings.NewReplacer(s.path(), ".", s.root, up).Replace(text)
}

// verify is what an agent must pass before it may finish, nil for one that may not write or
// cannot run it.
func (n *node) verify() agent.Check {
	line := n.run.o.Verify
	if line == "" || n.policy.Reader || n.policy.Access == gate.ReadOnly || n.place.ws.Exec == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if err := n.run.journal.Barrier(); err != nil {
			return line + " (not run)\n" + unsaved, nil
		}
		f, err := n.run.try(ctx, n.place, line)
		switch {
		case ctx.Err() != nil:
			return "", nil // the loop ends the agent
		case err != nil:
			n.verified = &tools.Command{Line: line, Killed: "not run"}
			return err.Error(), nil
		}
		n.verified = &f.Command
		n.record(&journal.Checked{Command: line, Exit: f.Exit, Killed: f.Killed, Text: f.output})
		return f.wrong(), nil
	}
}

// tellOfChecks says once what of the checks that were asked for cannot be done here. That merges
// cannot be checked is an error: nobody would see that they were not.
func (r *run) tellOfChecks() error {
	if r.o.VerifyMerge != "" && r.repo == nil && r.delegates() {
		r.notice("--verify-merge is not run: writers work in place, so nothing is merged", "--verify checks what each agent leaves")
	}
	if r.o.NoSandbox || r.noBox == nil {
		return nil
	}
	if r.o.VerifyMerge != "" {
		return &uncheckedError{r.noBox}
	}
	if r.o.Verify != "" {
		r.notice("--verify is not run: "+r.noBox.Error(), "allow commands without a box with --sandbox off")
	}
	return nil
}

// verifyMerge runs the check of merges in a copy of a merged commit, and gives what is wrong.
func (b *batch) verifyMerge(ctx context.Context, name, merged string) (wrong string, err error) {
	line := b.run.o.VerifyMerge
	if line == "" {
		return "", nil
	}
	name += "-check"
	var c *worktree.Copy
	err = b.place.onTree(ctx, func(*worktree.Tree) (err error) {
		c, err = b.run.repo.Scratch(ctx, b.base.snap, merged, name)
		return err
	})
	if err != nil {
		return "", err
	}
	defer b.drop(ctx, c)
	p, err := b.run.open(ctx, b.siteOf(c), name, true, nil)
	if err != nil {
		return "", err
	}
	f, err := b.run.try(ctx, p, line)
	if err = errors.Join(err, p.Close()); err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // it did not fail: it was ended
	}
	if err != nil {
		return "", err
	}
	b.record(&journal.Checked{Command: line, Exit: f.Exit, Killed: f.Killed, Merge: merged, Text: f.output})
	return f.wrong(), nil
}

// An uncheckedError refuses a run whose merges cannot be checked as it was told.
type uncheckedError struct{ cause error }

func (e *uncheckedError) Error() string { return "--verify-merge cannot be run: " + e.cause.Error() }

// Unwrap returns why there is no box.
func (e *uncheckedError) Unwrap() error { return e.cause }

// Hint says what to do next.
func (e *uncheckedError) Hint() string {
	return "leave --verify-merge away, or allow commands without a box with --sandbox off"
}
