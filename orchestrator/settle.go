package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
	"skein/tools/gate"
	"skein/worktree"
)

// finish settles a child: brings its change into the parent's tree or keeps it, and reports.
// It is called for one child of the batch at a time, in request order.
func (b *batch) finish(ctx context.Context, c *child) (delegate.Report, error) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	rep := b.report(c, string(c.out.Stop), c.out.Cause)
	e := &journal.Settled{Child: c.ordinal, Change: rep.Change}
	if c.copy != nil {
		if err := b.settleChange(ctx, after, c, &rep, e); err != nil {
			return rep, err
		}
	}
	e.Change, e.Files, e.Added, e.Removed = rep.Change, rep.Files, rep.Added, rep.Removed
	e.Cause, e.Report = rep.WhyKept, rep.Model()
	b.record(e)
	b.run.sum.settled(rep)
	return rep, nil
}

// report gives what is known of a child before its change is settled.
func (b *batch) report(c *child, stop, cause string) delegate.Report {
	rep := delegate.Report{
		Index: c.d.Index, Of: c.d.Of, Label: c.d.Label(), Child: b.names[c.d], Stop: stop, Cause: cause,
		Elapsed: c.elapsed, Turns: c.out.Turns, Answer: c.out.Text, Usage: c.out.Usage,
	}
	if c.node != nil {
		rep.Calls, rep.Commands, rep.Denied = c.calls, c.commands, c.denied
		if c.copy == nil && !c.policy.Reader {
			rep.Change = delegate.InPlace
		}
	}
	return rep
}

// settleChange merges what the child changed, or keeps it. ctx is the run's; after outlives
// a cancelled one.
func (b *batch) settleChange(ctx, after context.Context, c *child, rep *delegate.Report, e *journal.Settled) error {
	if c.lost != nil {
		// The copy stays where it is: nothing with work in it is deleted.
		rep.Lost = c.lost.Error()
		rep.Change = delegate.Kept
		rep.WhyKept = "its copy could not be read; it stays at " + c.copy.Root
		return nil
	}
	if c.change.Empty {
		rep.Change = delegate.NoChange
		rep.Left = lefts(c.change.Left)
		return b.drop(after, c)
	}
	for _, f := range c.change.Files {
		rep.Files = append(rep.Files, f.Path)
		rep.Added += max(f.Added, 0)
		rep.Removed += max(f.Removed, 0)
	}
	rep.Left = lefts(c.change.Left)
	e.Commit = c.change.Commit
	b.run.journal.Append(c.ordinal, &journal.Collected{Commit: c.change.Commit, Files: rep.Files, Left: rep.Left})

	if err := b.merge(ctx, c, rep); err != nil {
		return err
	}
	if rep.Change != delegate.Merged {
		ref, err := b.run.repo.Keep(after, c.change, c.ordinal)
		if err != nil {
			rep.Lost = err.Error()
			rep.WhyKept += "; its copy stays at " + c.copy.Root
			return nil
		}
		e.Ref = ref
	}
	return b.drop(after, c)
}

// drop removes a copy that holds nothing which is not merged or kept.
func (b *batch) drop(ctx context.Context, c *child) error {
	if len(c.change.Left) > 0 {
		return nil // what was left out exists nowhere else
	}
	if err := c.copy.Remove(ctx); err != nil {
		b.run.notice("copy of "+c.ordinal+" was not removed: "+err.Error(), "it is removed at the next start")
	}
	return nil
}

// merge brings the change into the parent's tree, all of it or nothing, and fills in the
// report. Only a failure of the harness is an error.
func (b *batch) merge(ctx context.Context, c *child, rep *delegate.Report) error {
	keep := func(why string) error {
		rep.Change, rep.WhyKept = delegate.Kept, why
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return keep("the run was ended before")
	case c.out.Stop != agent.Completed:
		return keep("the subagent did not finish")
	}
	if b.policy.Access == gate.Confirm && !b.policy.Isolated {
		if ok, why := b.askMerge(ctx, c); !ok {
			return keep(why)
		}
	}
	if err := b.run.journal.Barrier(); err != nil {
		return err
	}
	merged, err := b.run.repo.Merge(ctx, b.base.onto, c.change)
	if err == nil {
		_, err = b.place.tree.Apply(ctx, b.base.onto, merged)
	}
	var conflict *worktree.ConflictError
	switch {
	case errors.As(err, &conflict):
		rep.Change, rep.WhyKept = delegate.Conflict, "it conflicts with what was merged before it or with the tree as it is now"
		for _, k := range conflict.Conflicts {
			rep.Conflicts = append(rep.Conflicts, k.Path+" ("+k.Kind+")")
		}
	case err != nil:
		return keep(err.Error())
	default:
		rep.Change = delegate.Merged
		b.base.onto = merged
	}
	return nil
}

// askMerge asks a person before a writer's change reaches the tree.
func (b *batch) askMerge(ctx context.Context, c *child) (bool, string) {
	diff, err := b.run.repo.Diff(ctx, c.change.Base, c.change.Commit)
	if err != nil {
		return false, "its diff could not be shown: " + err.Error()
	}
	return b.run.ask(ctx, b.ordinal, gate.Question{
		Agent: c.ordinal, Tool: delegate.Name, Purpose: fmt.Sprintf("merge the changes of %q", c.d.Label()), Detail: diff, Dir: b.place.ws.Path,
	})
}
