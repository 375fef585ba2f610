package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/sandbox"
	"skein/scheduler"
	"skein/tools/gate"
	"skein/worktree"
)

// settleTime bounds what is done for a child after its context ended: collecting what it
// changed, keeping it, removing its copy.
const settleTime = time.Minute

// base is the snapshot that all writers of a batch start from, made when the first one
// starts, and the commit that holds what was merged of them so far.
type base struct {
	once sync.Once
	snap worktree.Snapshot
	err  error
	onto string // touched while settling only
}

func (b *batch) snapshot(ctx context.Context) (worktree.Snapshot, error) {
	b.base.once.Do(func() {
		b.base.snap, b.base.err = b.place.tree.Snapshot(ctx)
		b.base.onto = b.base.snap.Commit
		if b.base.err == nil {
			s := b.base.snap
			b.record(&journal.Snapshot{Commit: s.Commit, Branch: s.Branch, Uncommitted: s.Uncommitted, Left: lefts(s.Left)})
		}
	})
	return b.base.snap, b.base.err
}

// delegation turns a delegate_task call into a job, or refuses it.
func (b *batch) delegation(i int, d *delegate.Delegation) scheduler.Job {
	if d == nil {
		return b.refuse(i, scheduler.Read, "invalid", delegate.Fault(b.calls[i].Args))
	}
	effect := scheduler.Read
	if d.Access == delegate.Writing {
		effect = scheduler.Isolated
		if b.place.tree == nil {
			effect = scheduler.Write
		}
	}
	if b.depth >= b.run.o.MaxDepth {
		return b.refuse(i, effect, "deny", "Delegation depth limit reached: a subagent cannot delegate. Do the task yourself.")
	}
	if d.Access == delegate.Writing {
		// What a writer may do is decided here; what it did is asked about at its merge.
		if v := b.policy.Decide(gate.Call{Tool: delegate.Name, Effect: scheduler.Isolated, Boxed: true}); v.Verdict == gate.Deny {
			return b.refuse(i, effect, "deny", v.Reason)
		}
	}
	if !b.run.admit() {
		return b.refuse(i, effect, "deny", fmt.Sprintf("child limit reached: this run may have %d subagents. Do the task yourself.", b.run.o.MaxChildren))
	}
	b.note(i, effect, "allow", "")
	b.names[d] = b.nextChild()
	b.run.journal.Append(b.names[d], &journal.AgentQueued{Title: d.Label(), Task: d.Task.Task, Access: string(d.Access), Index: d.Index, Of: d.Of})
	job := d.Job(b, effect, &b.results[i])
	settle := job.Settle
	job.Settle = func(ctx context.Context) error {
		if err := settle(ctx); err != nil {
			return err
		}
		b.settled(i)
		return nil
	}
	return job
}

// A child is a node that works for another one.
type child struct {
	*node
	d       *delegate.Delegation
	copy    *worktree.Copy // nil for readers and in place
	change  worktree.Change
	lost    error // why the change could not be collected
	out     agent.Outcome
	started time.Time
	elapsed time.Duration
}

// RunChild implements [delegate.Runner]. Its ctx carries the child's slot.
func (b *batch) RunChild(ctx context.Context, d *delegate.Delegation) (func(context.Context) (delegate.Report, error), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.run.o.ChildTime, agent.ErrTimeout)
	defer cancel()
	c := &child{d: d, started: b.run.o.Now()}
	where, err := b.settleIn(ctx, d, c)
	if err != nil {
		// Not being able to isolate a child is that child's failure, not the run's.
		return func(context.Context) (delegate.Report, error) { return b.report(c, "refused", err.Error()), nil }, nil
	}
	err = b.live(ctx, c, where)
	c.elapsed = b.run.since(c.started)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (delegate.Report, error) { return b.finish(ctx, c) }, nil
}

// settleIn gives the child its place and makes its node.
func (b *batch) settleIn(ctx context.Context, d *delegate.Delegation, c *child) (delegate.Place, error) {
	where := delegate.Place{Live: true}
	s := b.place.site
	if d.Access == delegate.Writing && b.place.tree != nil {
		snap, err := b.snapshot(ctx)
		if err != nil {
			return where, err
		}
		c.copy, err = b.run.repo.Copy(ctx, snap, b.names[d])
		if err != nil {
			return where, err
		}
		s = copySite(c.copy, b.place.ws.Path)
		if b.run.o.NoSandbox {
			s.view = s.root // nothing can show the copy at its parent's path
		}
		b.run.journal.Append(b.names[d], &journal.Copied{Backend: "fresh", Path: c.copy.Root})
		where = delegate.Place{Branch: snap.Branch, Snapshot: snap.Commit, Uncommitted: snap.Uncommitted, Left: lefts(snap.Left)}
	}
	p, err := b.run.open(s, d.Access == delegate.Writing)
	if err != nil {
		return where, err
	}
	if c.copy != nil && p.ws.Path != b.place.ws.Path {
		p.ws.Alias = b.place.ws.Path
		where.Path, where.Alias = p.ws.Path, p.ws.Alias
	}
	policy := gate.Policy{Access: b.policy.Access, Reader: d.Access == delegate.ReadOnly, Isolated: c.copy != nil}
	c.node = b.run.newNode(b.names[d], b.depth+1, p, policy)
	return where, nil
}

// copySite is where a copy is seen: its root at the path of the root of the parent's tree,
// so that its workspace is at the path of the parent's.
func copySite(c *worktree.Copy, parent string) site {
	offset := filepath.Clean(c.Tree().Prefix)
	s := site{root: c.Root, view: parent, offset: offset, gitDir: c.GitDir, tree: c.Tree(), copy: c}
	if offset != "." {
		s.view = strings.TrimSuffix(parent, "/"+offset)
	}
	for _, o := range c.Objects {
		s.mounts = append(s.mounts, sandbox.Mount{Host: o})
	}
	return s
}

// live runs the child's agent and collects what it changed, whatever ended it, a panic
// included.
func (b *batch) live(ctx context.Context, c *child, where delegate.Place) (err error) {
	defer func() {
		// Nothing of the child runs any more when its change is collected.
		err = errors.Join(err, c.place.Close())
		if c.copy != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
			defer cancel()
			c.change, c.lost = c.copy.Collect(after, fmt.Sprintf("skein: %s %s", c.ordinal, c.d.Label()))
		}
	}()
	brief := delegate.Brief{Mode: b.run.o.Mode, MayDelegate: c.depth < b.run.o.MaxDepth, Place: where}
	first := model.Message{Role: model.User, Text: brief.Text(c.d)}
	if err := c.begin(delegate.Front(b.run.o.Mode, b.before), first); err != nil {
		return err
	}
	c.out, err = c.work(ctx, b.run.o.ChildTurns, nil)
	return err
}

// lefts renders what was left out, one line each.
func lefts(left []worktree.Left) []string {
	var lines []string
	for _, l := range left {
		lines = append(lines, l.Path+" ("+l.Reason+")")
	}
	return lines
}
