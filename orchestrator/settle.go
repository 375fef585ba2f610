package orchestrator

import (
	"context"
	"path"
	"strings"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/worktree"
)

// finish settles a child: brings its change into the parent's tree or keeps it, and reports.
// It is called for one child of the batch at a time, in request order. An error means that
// the tree may be half changed, or that the harness failed otherwise.
func (b *batch) finish(ctx context.Context, c *child) (delegate.Report, error) {
	rep := b.report(c)
	var commit, ref string
	var err error
	if c.copy != nil {
		commit, ref, err = b.settleChange(ctx, c, &rep)
	}
	b.tell(rep, commit, ref)
	return rep, err
}

// unsettled reports a child that was not settled: it got no slot before its batch ended, or the
// harness failed while it settled it.
func (b *batch) unsettled(ctx context.Context, c *child) {
	b.run.control.over(c.name)
	if c.started.IsZero() {
		stop, cause := agent.Ended(ctx)
		c.out.Stop, c.out.Cause = stop, strings.TrimSpace(cause+" before it started")
	} else {
		c.out.Stop, c.out.Cause = agent.Failed, settleFailed
	}
	b.tell(b.report(c), "", "")
}

const settleFailed = "the harness failed while it settled this child"

// tell records a settled child and counts it.
func (b *batch) tell(rep delegate.Report, commit, ref string) {
	b.record(&journal.Settled{
		Child: rep.Child, Change: rep.Change, Commit: commit, Ref: ref, Files: rep.Files, Added: rep.Added, Removed: rep.Removed,
		Cause: rep.Why, Conflicts: rep.Conflicts, Resolved: rep.Resolved, Stale: rep.Stale, Show: rep.Show, Report: rep.Model(), People: rep.People(),
	})
	b.run.sum.settled(rep)
}

// report gives what is known of a child before its change is settled.
func (b *batch) report(c *child) delegate.Report {
	rep := delegate.Report{
		Index: c.d.Index, Of: c.d.Of, Label: c.d.Label(), Child: c.name, Stop: string(c.out.Stop), Cause: c.out.Cause, Detail: c.detail,
		Elapsed: c.elapsed, Turns: c.out.Turns, Answer: c.out.Text, Usage: c.out.Usage, Counted: c.out.Counted, By: b.engineOf(c.d.Model).Name,
	}
	if c.out.Stop == agent.ModelError && c.out.Err != nil {
		// A provider's words are neither replies nor files: they are for people.
		rep.Cause, rep.Detail = "its call to the model failed", c.out.Err.Error()
	}
	if c.node != nil {
		rep.Calls, rep.Commands, rep.Denied, rep.Verify = c.calls, c.commands, c.denied.told, c.verified
		rep.Stale = c.stale
		if c.copy == nil && !c.policy.Reader {
			rep.Change, rep.Idle = delegate.InPlace, !c.acted
			b.acted = b.acted || c.acted
		}
	} else {
		rep.Usage, rep.Counted = model.NoUsage(), model.NoUsage()
	}
	return rep
}

// settleChange merges what the child changed, or keeps it, and removes its copy. It gives the
// commit that holds the change and the ref that keeps it, "" where there is none.
func (b *batch) settleChange(ctx context.Context, c *child, rep *delegate.Report) (commit, ref string, err error) {
	switch {
	case c.node == nil: // it never worked in its copy
		b.drop(ctx, c.copy)
		return "", "", nil
	case c.unread != nil:
		// The copy stays where it is: nothing with work in it is deleted.
		rep.Change, rep.Why, rep.Detail = delegate.Kept, "its changes could not be read", c.unread.Error()
		b.where(c, rep)
		return "", "", nil
	}
	rep.Left, rep.Shared = lefts(c.change.Left), b.shared(c)
	if c.change.Empty {
		rep.Change = delegate.NoChange
		b.drop(ctx, c.copy)
		return "", "", nil
	}
	fill(rep, c.change.Files)
	b.run.journal.Append(c.name, &journal.Collected{Commit: c.change.Commit, Files: rep.Files, Left: rep.Left, Bare: b.run.readsBare()})
	if err = b.merge(ctx, c, rep); rep.Change != delegate.Merged {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		var unkept error
		if ref, unkept = b.run.repo.Keep(after, c.change, c.name, whyKept(rep)); unkept != nil {
			rep.Detail = strings.TrimPrefix(rep.Detail+"; "+unkept.Error(), "; ")
			b.where(c, rep)
			return c.change.Commit, "", err
		}
		rep.Show = "skein worktrees show " + path.Base(ref)
		if rep.Unasked {
			b.run.sum.left(path.Base(ref))
		}
	}
	b.drop(ctx, c.copy)
	return c.change.Commit, ref, err
}

// fill tells which files a change has.
func fill(rep *delegate.Report, files []worktree.FileStat) {
	rep.Files, rep.Added, rep.Removed = nil, 0, 0
	for _, f := range files {
		rep.Files = append(rep.Files, f.Path)
		rep.Added += max(f.Added, 0)
		rep.Removed += max(f.Removed, 0)
	}
}

// where tells where a change is that no ref holds.
func (b *batch) where(c *child, rep *delegate.Report) {
	if c.copy.Gone() != nil {
		rep.Change, rep.Why = delegate.Lost, "its copy was removed while it worked"
		return
	}
	rep.Detail += "; its copy is at " + c.copy.Root
}

// whyKept is the reason that is noted with a kept change.
func whyKept(rep *delegate.Report) string {
	if rep.Change == delegate.Conflict {
		return rep.Why + ": " + strings.Join(rep.Conflicts, ", ")
	}
	return rep.Why
}

// drop removes a copy whose work is merged, kept, or none. What was left out of a change
// exists nowhere else and is put aside.
func (b *batch) drop(ctx context.Context, copied *worktree.Copy) {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	left, err := copied.Remove(after)
	if left != "" {
		b.record(&journal.Notice{Text: "files of " + copied.Name + " were left out of its change", Hint: "they are in " + left})
	}
	if err != nil {
		b.record(&journal.Notice{Text: "the copy of " + copied.Name + " was not removed: " + err.Error(), Hint: "it is removed at the next start"})
	}
}
