package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		rep.Change, rep.Why, rep.Detail, rep.Resolved = delegate.Kept, why, detail, "" // a solution goes with the attempt
		return nil
	}
	// A copy holds the whole repository; the workspace may be a subdirectory of it.
	switch outside, beyond := c.change.Outside(b.place.tree.Prefix), b.beyond(c); {
	case ctx.Err() != nil:
		return keep(b.over(ctx), "")
	case b.base.stopped != "":
		return keep("the conflict of "+b.base.stopped+" stopped the merges", "")
	case c.out.Stop != agent.Completed:
		return keep("the subagent did not finish", rep.Detail)
	case len(outside) > 0:
		return keep("it changed files outside the workspace: "+strings.Join(outside, ", "), "")
	case beyond != "":
		return keep(beyond, "")
	}
	merged, k, err := b.combine(ctx, c.name, c.change)
	if err == nil && k != nil {
		k.of = c
		merged, err = b.resolve(ctx, k, rep)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return keep(b.over(ctx), "")
	case err != nil:
		return keep("it could not be merged", err.Error())
	case merged == "":
		return b.conflict(ctx, c, rep, k)
	}
	// To the tree of the parent a merge is a write.
	if b.policy.Decide(gate.Call{Tool: delegate.Name, Effect: scheduler.Write}).Verdict == gate.Ask {
		if v := b.askMerge(ctx, c, rep, merged); !v.granted {
			rep.Unasked = v.unasked
			return keep(v.why, "")
		}
	}
	if err := b.run.journal.Barrier(); err != nil {
		return keep(unsaved, err.Error())
	}
	var applied worktree.Applied
	err = b.place.onTree(ctx, func(t *worktree.Tree) (err error) {
		applied, err = c.copy.ApplyTo(ctx, t, b.base.onto, merged)
		return err
	})
	if conflict, ok := errors.AsType[*worktree.ConflictError](err); ok {
		why := "it conflicts with the tree as it is now"
		if rep.Resolved != "" { // whose text the conflict shows
			why = "as " + rep.Resolved + " resolved it, " + why
		}
		rep.Resolved = ""
		return b.conflict(ctx, c, rep, &clash{why: why, list: conflict.Conflicts})
	} else if errors.Is(err, worktree.ErrHalfApplied) {
		_ = keep("the tree could not be put back", err.Error())
		return err // nothing may be applied on top of that
	} else if err != nil && ctx.Err() != nil {
		return keep(b.over(ctx), err.Error())
	} else if err != nil {
		return keep("it could not be applied", err.Error())
	}
	if rep.Resolved != "" { // what came into the tree is not what the child made
		fill(rep, applied.Files)
	}
	rep.Change, b.base.onto = delegate.Merged, merged
	b.base.merged = append(b.base.merged, c)
	return nil
}

// over is why a change is kept that was not merged when ctx ended: the run was over, or the child
// that it was to be merged for.
func (b *batch) over(ctx context.Context) string {
	cause := context.Cause(ctx)
	end, up := (*agent.End)(nil), (*timeUp)(nil)
	if errors.As(cause, &end) || errors.As(cause, &up) && up.whose == own {
		return b.ordinal + ", which asked for it, was ended before"
	}
	return "the run was ended before"
}

// A clash is a change that does not go together with what was merged before it.
type clash struct {
	why  string
	list []worktree.Conflict
	of   *child

	// For whoever resolves it: the commit that shows it, "" where none does; the only files
	// that the solution may change; and those that must not stand in it.
	start string
	touch []string
	aside []string
}

// kindVerify is the kind of a clash that the check of merges found. Its path is the command.
const kindVerify = "verify"

// combine merges a change onto what was merged before, and has the result checked.
func (b *batch) combine(ctx context.Context, name string, ch worktree.Change) (merged string, _ *clash, err error) {
	merged, err = b.run.repo.Merge(ctx, b.base.onto, ch)
	if conflict, ok := errors.AsType[*worktree.ConflictError](err); ok {
		k := &clash{why: "it conflicts with what was merged before it", list: conflict.Conflicts, start: conflict.Marked, aside: conflict.Aside}
		for _, c := range conflict.Conflicts {
			k.touch = append(k.touch, c.Path)
		}
		return "", k, nil
	}
	if err != nil {
		return "", nil, err
	}
	wrong, err := b.verifyMerge(ctx, name, merged)
	if err != nil || wrong == "" {
		return merged, nil, err
	}
	k := &clash{why: "with it, the check of merges fails", list: []worktree.Conflict{{Path: b.run.o.VerifyMerge, Kind: kindVerify, Text: wrong}}, start: merged}
	for _, c := range b.base.merged {
		k.touch = append(k.touch, names(c.change.Files)...)
	}
	k.touch = append(k.touch, names(ch.Files)...)
	slices.Sort(k.touch)
	k.touch = slices.Compact(k.touch)
	return "", k, nil
}

// names lists the paths of files, those that were renamed under both names.
func names(files []worktree.FileStat) []string {
	var paths []string
	for _, f := range files {
		if f.From != "" {
			paths = append(paths, f.From)
		}
		paths = append(paths, f.Path)
	}
	return paths
}

// conflict reports a change that does not merge, with what shows it.
func (b *batch) conflict(ctx context.Context, c *child, rep *delegate.Report, k *clash) error {
	rep.Change, rep.Why, rep.Conflicts = delegate.Conflict, k.why, k.lines()
	if b.run.o.OnConflict == Stop {
		b.base.stopped = c.name
		rep.Why += "; no later change is merged"
	}
	var shown strings.Builder
	var paths []string
	for _, k := range k.list {
		if k.Kind != kindVerify && !strings.HasPrefix(k.Text, "@@") {
			paths = append(paths, k.Path) // no place in a file: what the child did to it tells more
		}
		if k.Text == "" {
			continue
		}
		if k.Kind != kindVerify { // whose text begins with the command
			fmt.Fprintf(&shown, "--- %s\n", k.Path)
		}
		shown.WriteString(strings.TrimSuffix(k.Text, "\n") + "\n")
	}
	if len(paths) > 0 {
		if diff, err := b.run.repo.Diff(ctx, c.change.Base, c.change.Commit, paths...); err == nil {
			shown.WriteString(diff)
		}
	}
	rep.Hunks = shown.String()
	return nil
}

// lines names what clashes, one line each.
func (k *clash) lines() []string {
	var lines []string
	for _, c := range k.list {
		lines = append(lines, c.Path+" ("+c.Kind+")")
	}
	return lines
}

// askMerge asks a person before a writer's change reaches the tree.
func (b *batch) askMerge(ctx context.Context, c *child, rep *delegate.Report, merged string) verdict {
	from, to, files, what := c.change.Base, c.change.Commit, c.change.Files, "merge its changes"
	if b.policy.Isolated {
		what += " into the copy of " + b.ordinal // not to be granted with one into the user's tree
	}
	var err error
	if rep.Resolved != "" { // it is not what the child made: show what will change
		from, to = b.base.onto, merged
		what += ", resolved by " + rep.Resolved
		files, err = b.run.repo.Files(ctx, from, to)
	}
	diff, undiffed := b.run.repo.Diff(ctx, from, to)
	if errors.Join(err, undiffed) != nil {
		return verdict{why: "its diff could not be shown"}
	}
	return b.ask(ctx, gate.Question{
		Agent: c.name, Title: c.d.Label(), Tool: delegate.Name, Purpose: what, Detail: diff, Dir: b.place.ws.Path, Paths: names(files),
	})
}
