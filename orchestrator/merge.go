package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skein/agent"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools/gate"
	"skein/worktree"
)

// merge brings the change into the parent's tree, all of it or nothing, and fills in the
// report. Only a failure of the harness is an error.
func (b *batch) merge(ctx context.Context, c *child, rep *delegate.Report) error {
	keep := func(why, detail string) error {
		rep.Change, rep.Why, rep.Detail = delegate.Kept, why, detail
		return nil
	}
	// A copy holds the whole repository; the workspace may be a subdirectory of it.
	switch outside := c.change.Outside(b.place.tree.Prefix); {
	case ctx.Err() != nil:
		return keep("the run was ended before", "")
	case b.base.stopped != "":
		return keep("the conflict of "+b.base.stopped+" stopped the merges", "")
	case c.out.Stop != agent.Completed:
		return keep("the subagent did not finish", rep.Detail)
	case len(outside) > 0:
		return keep("it changed files outside the workspace: "+strings.Join(outside, ", "), "")
	case b.beyond(c) != "":
		return keep(b.beyond(c), "")
	}
	merged, err := b.run.repo.Merge(ctx, b.base.onto, c.change)
	if conflict, ok := errors.AsType[*worktree.ConflictError](err); ok {
		return b.conflict(ctx, c, rep, conflict, "it conflicts with what was merged before it")
	} else if err != nil {
		return keep("it could not be merged", err.Error())
	}
	// To the tree of the parent a merge is a write.
	if b.policy.Decide(gate.Call{Tool: delegate.Name, Effect: scheduler.Write}).Verdict == gate.Ask {
		if ok, why := b.askMerge(ctx, c); !ok {
			return keep(why, "")
		}
	}
	if err := b.run.journal.Barrier(); err != nil {
		return keep(unsaved, err.Error())
	}
	err = b.place.onTree(ctx, func(t *worktree.Tree) error { _, err := c.copy.ApplyTo(ctx, t, b.base.onto, merged); return err })
	if conflict, ok := errors.AsType[*worktree.ConflictError](err); ok {
		return b.conflict(ctx, c, rep, conflict, "it conflicts with the tree as it is now")
	} else if errors.Is(err, worktree.ErrHalfApplied) {
		_ = keep("the tree could not be put back", err.Error())
		return err // nothing may be applied on top of that
	} else if err != nil {
		return keep("it could not be applied", err.Error())
	}
	rep.Change, b.base.onto = delegate.Merged, merged
	return nil
}

// conflict reports a change that does not merge, with what shows it.
func (b *batch) conflict(ctx context.Context, c *child, rep *delegate.Report, e *worktree.ConflictError, why string) error {
	rep.Change, rep.Why = delegate.Conflict, why
	if b.run.o.OnConflict == Stop {
		b.base.stopped = c.name
		rep.Why += "; no later change is merged"
	}
	var shown strings.Builder
	var paths []string
	for _, k := range e.Conflicts {
		rep.Conflicts = append(rep.Conflicts, k.Path+" ("+k.Kind+")")
		if k.Text == "" || !strings.HasPrefix(k.Text, "@@") {
			paths = append(paths, k.Path) // no place in a file: what the child did to it tells more
		}
		if k.Text != "" {
			fmt.Fprintf(&shown, "--- %s\n%s\n", k.Path, strings.TrimSuffix(k.Text, "\n"))
		}
	}
	if len(paths) > 0 {
		if diff, err := b.run.repo.Diff(ctx, c.change.Base, c.change.Commit, paths...); err == nil {
			shown.WriteString(diff)
		}
	}
	rep.Hunks = shown.String()
	return nil
}

// askMerge asks a person before a writer's change reaches the tree.
func (b *batch) askMerge(ctx context.Context, c *child) (bool, string) {
	diff, err := b.run.repo.Diff(ctx, c.change.Base, c.change.Commit)
	if err != nil {
		return false, "its diff could not be shown"
	}
	var paths []string
	for _, f := range c.change.Files {
		paths = append(paths, f.Path)
	}
	return b.ask(ctx, gate.Question{
		Agent: c.name, Title: c.d.Label(), Tool: delegate.Name, Purpose: "merge its changes", Detail: diff, Dir: b.place.ws.Path, Paths: paths,
	})
}
