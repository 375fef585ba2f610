package orchestrator

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/scheduler"
	"skein/worktree"
)

// resolveTries is how many resolvers a clash is given to, one after the other.
const resolveTries = 2

// resolve has a clash solved by a child of its own, and gives the commit that holds the
// solution on top of what was merged before; "" where that is not wanted, cannot be or did not
// succeed. The report is told who did it, or why each try failed. Until the solution is applied
// the change itself stays where it is: whatever ends the run meanwhile, it is kept.
func (b *batch) resolve(ctx context.Context, k *clash, rep *delegate.Report) (string, error) {
	if b.run.o.OnConflict != Resolve || k.start == "" {
		return "", nil
	}
	wrong := ""
	for range resolveTries {
		if ctx.Err() != nil {
			break
		}
		if b.run.control.ended() != b.endings {
			rep.Tries = append(rep.Tries, "the user has ended the subagents")
			break
		}
		if !b.run.admit() {
			rep.Tries = append(rep.Tries, fmt.Sprintf("no subagent is left for it: this run may have %d subagents", b.run.o.MaxChildren))
			break
		}
		r := b.resolver(k, b.resolveTask(ctx, k, wrong))
		merged, flaw, err := b.solve(ctx, r, k)
		if err != nil {
			return "", err
		}
		b.record(&journal.Resolved{Child: k.of.name, Resolver: r.name, Conflicts: k.lines(), Commit: merged, Cause: firstLine(flaw)})
		if flaw == "" {
			rep.Resolved, rep.Conflicts = r.name, k.lines()
			return merged, nil
		}
		rep.Tries = append(rep.Tries, r.name+": "+firstLine(flaw))
		if r.out.Stop == agent.Cancelled {
			break // whoever ended it wants no other
		}
		wrong = flaw
	}
	return "", nil
}

// resolver makes the child that is to solve a clash, and tells of it.
func (b *batch) resolver(k *clash, task string) *child {
	d := &delegate.Delegation{Index: 1, Of: 1}
	d.Task = delegate.Task{Task: task, Title: "resolve the conflict of " + k.of.name, Access: delegate.Writing}
	r := &child{name: b.nextChild(), d: d, start: k.start}
	b.children[d] = r
	b.run.control.queue(r.name)
	f := b.foresee(d, delegate.TaskOnly)
	b.run.journal.Append(r.name, &journal.AgentQueued{
		Title: d.Title, Task: d.Task.Task, Access: string(d.Access), Index: d.Index, Of: d.Of,
		Cached: model.Tokens(f.cached), New: model.Tokens(f.fresh),
	})
	return r
}

// solve lets a resolver work and merges what it made. Flaw says in its first line what is
// wrong with that, then what shows it.
func (b *batch) solve(ctx context.Context, r *child, k *clash) (merged, flaw string, err error) {
	err = b.run.sched.Do(ctx, []scheduler.Job{{Effect: scheduler.Isolated, Slot: true, Run: func(ctx context.Context) error {
		_, err := b.RunChild(ctx, r.d)
		return err
	}}})[0]
	b.run.control.over(r.name) // it may not have started
	b.run.sum.settled(b.report(r))
	if r.copy != nil {
		defer b.drop(ctx, r.copy)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return "", "it did not run: " + context.Cause(ctx).Error(), nil
	case err != nil:
		return "", "", err
	}
	if flaw, err = b.flaw(ctx, r, k); flaw != "" || err != nil {
		return "", flaw, err
	}
	// What it started from is to be merged, too: its change is all that is not there yet.
	all := worktree.Change{Name: r.change.Name, Base: b.base.onto, Commit: r.change.Commit}
	merged, next, err := b.combine(ctx, r.name, all)
	if err == nil && next != nil {
		return "", next.why + "\n" + next.list[0].Text, nil
	}
	return merged, "", err
}

// flaw says what is wrong with the work of a resolver, "" if nothing is.
func (b *batch) flaw(ctx context.Context, r *child, k *clash) (string, error) {
	switch {
	case r.out.Stop != agent.Completed:
		return strings.TrimSuffix(fmt.Sprintf("it did not finish: %s (%s)", r.out.Stop, r.out.Cause), " ()"), nil
	case r.unread != nil:
		return "its changes could not be read", nil
	case r.calls == 0:
		return "it made no tool call, so it cannot have looked at the files", nil
	case len(r.change.Left) > 0:
		return "not all of its changes can be taken: " + strings.Join(lefts(r.change.Left), ", "), nil
	}
	gone := map[string]bool{}
	var others []string
	for _, f := range r.change.Files {
		gone[f.From] = true
		gone[f.Path] = f.Status == "D"
		for _, name := range names([]worktree.FileStat{f}) {
			if !k.mayTouch(name) {
				others = append(others, name)
			}
		}
	}
	if len(others) > 0 {
		return "it changed files that do not conflict: " + strings.Join(others, ", "), nil
	}
	for _, name := range k.aside {
		if !gone[name] {
			return name + " is left, a name that git made up for one of two files of the same name", nil
		}
	}
	for _, c := range k.list {
		if gone[c.Path] && bothHave[c.Kind] {
			return "it removed " + c.Path + ", which both changes have", nil
		}
		if marks, err := b.markers(ctx, k.of, c, r.change.Commit); err != nil || marks {
			return "conflict markers are left in " + c.Path, err
		}
	}
	diff, err := b.run.repo.Diff(ctx, b.base.onto, r.change.Commit)
	if err == nil && diff == "" {
		return "nothing of the change is left in it", nil
	}
	return "", err
}

// bothHave are the kinds of conflicts in which both sides have the file.
var bothHave = map[string]bool{
	worktree.KindContent: true, worktree.KindAddAdd: true, worktree.KindRenameEdit: true, worktree.KindBinary: true, worktree.KindMode: true,
}

// mayTouch reports whether the solution of a clash may change a file.
func (k *clash) mayTouch(name string) bool {
	return slices.Contains(k.aside, name) || slices.ContainsFunc(k.touch, func(path string) bool {
		return name == path || strings.HasPrefix(name, path+"/") // a folder stands where a file does
	})
}

// What was added to a diff and looks like a line of git's around and between two sides, or only
// around them: an underline of seven is a line of many a text. They are longer where a conflict
// holds another one.
var (
	marker = regexp.MustCompile(`(?m)^\+(<{7,9}|>{7,9}|={7,9}|\|{7,9})( .*)?\r?$`)
	around = regexp.MustCompile(`(?m)^\+(<{7,9}|>{7,9}) .*\r?$`)
)

// markers reports whether a commit has markers where a file conflicts. Lines of that look which
// the change itself brought are none.
func (b *batch) markers(ctx context.Context, of *child, c worktree.Conflict, commit string) (bool, error) {
	looks := marker
	if !strings.HasPrefix(c.Text, "@@") {
		looks = around // the file may be new to what was merged before, with all its lines
	}
	diff, err := b.run.repo.Diff(ctx, b.base.onto, commit, c.Path)
	if err != nil || !looks.MatchString(diff) {
		return false, err
	}
	own, err := b.run.repo.Diff(ctx, of.change.Base, of.change.Commit, c.Path)
	if err != nil {
		return false, err
	}
	brought := looks.FindAllString(own, -1)
	return slices.ContainsFunc(looks.FindAllString(diff, -1), func(line string) bool { return !slices.Contains(brought, line) }), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
