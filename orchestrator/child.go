package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// A child is a node that works for another one.
type child struct {
	*node  // nil until it has a place
	name   string
	d      *delegate.Delegation
	form   *agent.Form    // of its answer; nil leaves it free
	start  string         // commit its copy begins with, for one that resolves a clash; "" is the batch's snapshot
	copy   *worktree.Copy // nil for readers and in place
	frozen *worktree.Copy // of a reader that has one
	marks  *marks         // of a live reader
	stale  []string       // of those, when it ended
	change worktree.Change
	unread error // why the change could not be collected
	out    agent.Outcome
	detail string // the error behind the outcome's cause, for people

	cancel  context.CancelCauseFunc // of its context; nil before it has a slot
	started time.Time
	elapsed time.Duration
}

// base is the snapshot that all writers of a batch start from, made when the first one
// starts, and the commit that holds what was merged of them so far.
type base struct {
	mu   sync.Mutex
	done bool
	snap worktree.Snapshot
	err  error

	// Touched while settling only.
	onto    string
	merged  []*child
	stopped string // whose conflict ended the merges; see [Stop]
}

func (b *batch) snapshot(ctx context.Context) (worktree.Snapshot, error) {
	b.base.mu.Lock()
	defer b.base.mu.Unlock()
	if b.base.done {
		return b.base.snap, b.base.err
	}
	var s worktree.Snapshot
	err := b.place.onTree(ctx, func(t *worktree.Tree) (err error) { s, err = t.Snapshot(ctx); return err })
	if err != nil && ctx.Err() != nil {
		return s, err // this child's time was up; its siblings may still have theirs
	}
	b.base.done, b.base.snap, b.base.err, b.base.onto = true, s, err, s.Commit
	if err == nil {
		b.record(&journal.Snapshot{Commit: s.Commit, Branch: s.Branch, Uncommitted: s.Uncommitted, Left: lefts(s.Left)})
	}
	return s, err
}

// delegation turns a delegate_task call into a job, or refuses it.
func (b *batch) delegation(i int) scheduler.Job {
	d, form, err := b.readDelegation(b.calls[i].Args)
	if err != nil {
		return b.refuse(i, scheduler.Read, "invalid", err.Error())
	}
	effect, asked := scheduler.Read, scheduler.Read
	if d.Access == delegate.Writing {
		effect, asked = scheduler.Isolated, scheduler.Isolated
		if b.place.tree == nil {
			effect = scheduler.Write
		}
	}
	if b.depth >= b.run.o.MaxDepth {
		return b.refuse(i, effect, "deny", "Delegation depth limit reached: a subagent cannot delegate. Do the task yourself.")
	}
	// What a writer may do is decided here; what it did is asked about at its merge.
	if v := b.policy.Decide(gate.Call{Tool: delegate.Name, Effect: asked, Boxed: true}); v.Verdict == gate.Deny {
		return b.refuse(i, effect, "deny", v.Reason)
	}
	if !b.run.admit() {
		return b.refuse(i, effect, "deny", fmt.Sprintf("Subagent limit reached: this run may have %d subagents. Do the task yourself.", b.run.o.MaxChildren))
	}
	b.note(i, effect, "allow", "")
	c := &child{name: b.nextChild(), d: d, form: form}
	b.children[d], b.outcomes[i].child = c, c
	job := d.Job(b, effect, &b.outcomes[i].result)
	report, record := job.Settle, b.settle(i)
	job.Settle = func(ctx context.Context) error {
		b.recordUpTo(ctx, i) // siblings before it that never got a slot report first
		if err := report(ctx); err != nil {
			b.outcomes[i].result.Text, b.outcomes[i].result.IsError = settleFailed, true
			b.outcomes[i].failed = err
		}
		return record(ctx)
	}
	return job
}

// announce tells the delegations of the batch of each other, and everybody of the children.
// It reports whether there are any.
func (b *batch) announce() bool {
	var all []*delegate.Delegation
	for _, o := range b.outcomes {
		if o.child != nil {
			all = append(all, o.child.d)
		}
	}
	delegate.Gather(all)
	for _, d := range all {
		b.run.control.queue(b.children[d].name)
		f := b.foresee(d, b.run.o.Mode)
		b.run.journal.Append(b.children[d].name, &journal.AgentQueued{
			Title: d.Label(), Task: d.Task.Task, Access: string(d.Access), Index: d.Index, Of: d.Of,
			Role: d.Role, Model: d.Model, Paths: d.Paths, Cached: model.Tokens(f.cached), New: model.Tokens(f.fresh),
		})
	}
	return len(all) > 0
}

// RunChild implements [delegate.Runner]. Its ctx carries the child's slot. Whatever becomes
// of the child, a panic included, is the child's own outcome, and what it changed is
// collected.
func (b *batch) RunChild(ctx context.Context, d *delegate.Delegation) (func(context.Context) (delegate.Report, error), error) {
	c := b.children[d]
	defer b.run.control.over(c.name)
	ctx, c.cancel = b.run.control.start(ctx, c.name)
	defer c.cancel(nil)
	ctx, times, stop := b.clocks.startChild(ctx, b.run.o.ChildTime)
	defer stop()
	c.started = b.run.o.Now()
	b.run.contain(ctx, c, func(ctx context.Context) error { return b.live(ctx, c, times) })
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	b.run.contain(after, c, c.collect)
	c.thaw(after, b.run)
	c.elapsed = b.run.since(c.started)
	return func(ctx context.Context) (delegate.Report, error) { return b.finish(ctx, c) }, nil
}

// contain runs a part of a child's life; an error or a panic becomes its outcome.
func (r *run) contain(ctx context.Context, c *child, f func(context.Context) error) {
	err := r.sched.Do(ctx, []scheduler.Job{{Effect: scheduler.Read, Run: f}})[0]
	var p *scheduler.PanicError
	var refused *refusal
	switch {
	case err == nil:
		return
	case errors.As(err, &p):
		r.journal.Append(c.name, &journal.Fault{Text: p.Error(), Stack: string(p.Stack)})
		c.out.Stop, c.out.Cause = agent.Failed, "the harness failed"
	case errors.Is(context.Cause(ctx), agent.ErrTimeout), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		c.out.Stop, c.out.Cause = agent.Ended(ctx)
		if errors.Is(err, ctx.Err()) {
			return // it says the same
		}
	case errors.As(err, &refused):
		c.out.Stop, c.out.Cause = "refused", refused.Error()
		err = refused.cause // whole, for people
	default:
		c.out.Stop, c.out.Cause = agent.Failed, "the harness failed"
	}
	c.detail = err.Error()
	if h := hinted(nil); errors.As(err, &h) {
		c.detail += "; " + h.Hint()
	}
}

// hinted is an error that says what to do next.
type hinted interface {
	error
	Hint() string
}

// A refusal is a child that could not be given a place. Not being able to isolate a child is
// that child's failure, not the run's.
type refusal struct{ cause error }

func (e *refusal) Unwrap() error { return e.cause }

// Error says why, in words that do not depend on this machine's paths: a model reads them.
func (e *refusal) Error() string {
	var unmerged *worktree.UnmergedError
	var special *worktree.SpecialFileError
	var locked *worktree.LockedError
	var acts hinted
	var errno syscall.Errno
	switch {
	case errors.As(e.cause, &unmerged):
		return unmerged.Error() + ": " + unmerged.Hint()
	case errors.As(e.cause, &special):
		return special.Error() + ": " + special.Hint()
	case errors.As(e.cause, &locked):
		return "another run held the repository for too long: end it, or wait"
	case errors.As(e.cause, &acts) && !strings.Contains(acts.Error()+acts.Hint(), "/"):
		return acts.Error() + ": " + acts.Hint()
	case errors.As(e.cause, &errno):
		return "its workspace could not be made: " + errno.Error()
	}
	return "its workspace could not be made"
}

// live gives the child a place and runs its agent.
func (b *batch) live(ctx context.Context, c *child, times clocks) error {
	where, err := b.accommodate(ctx, c, times)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &refusal{err}
	}
	mode := b.run.o.Mode
	if c.start != "" {
		mode = delegate.TaskOnly // its task says all that it has to know
	}
	brief := delegate.Brief{Mode: mode, MayDelegate: c.mayDelegate(), Place: where}
	first := model.Message{Role: model.User, Text: brief.Text(c.d)}
	front, err := c.engine.adopt(delegate.Front(mode, b.before), b.engine)
	if err != nil {
		return err
	}
	if err := c.begin(front, first); err != nil {
		return err
	}
	c.out, err = c.work(ctx, b.run.o.ChildTurns, c.form)
	return err
}

// accommodate gives the child its place and makes its node.
func (b *batch) accommodate(ctx context.Context, c *child, times clocks) (delegate.Place, error) {
	where := delegate.Place{Live: true, Branch: b.place.branch}
	s, writes := b.place.site, c.d.Access == delegate.Writing
	copied := b.place.tree != nil && (writes || b.run.o.Readers == Frozen)
	if copied {
		cp, snap, err := b.copyFor(ctx, c)
		if err != nil {
			return where, err
		}
		if writes {
			c.copy, err = cp, cp.Note(c.message())
		} else {
			err = c.freeze(cp)
		}
		if err != nil {
			return where, err
		}
		s = b.siteOf(cp)
		where = delegate.Place{Frozen: !writes, Branch: snap.Branch, Snapshot: cp.Base.Commit, Uncommitted: snap.Uncommitted, Left: lefts(append(snap.Left[:len(snap.Left):len(snap.Left)], cp.Without...))}
	}
	// A frozen copy may be written by commands; edits are the gate's to refuse.
	p, err := b.run.open(ctx, s, c.name, writes || copied, b.place.readers)
	if err != nil {
		return where, err
	}
	p.branch = where.Branch
	if copied && p.ws.Path != b.place.ws.Path {
		p.ws.Alias = b.place.ws.Path
		where.Path, where.Alias = p.ws.Path, p.ws.Alias
	}
	if !writes && !copied {
		c.marks = &marks{}
		p.ws.Seen = c.marks.see
	}
	policy := gate.Policy{
		Access: b.policy.Access, Reader: !writes, Isolated: c.copy != nil, Each: b.policy.Each,
		Tools: narrowed(b.policy.Tools, c.d.Tools),
	}
	c.node = b.run.newNode(c.name, b.depth+1, p, policy)
	c.title, c.engine = c.d.Label(), b.engineOf(c.d.Model)
	c.clocks, c.quit = times, c.cancel
	return where, nil
}

// collect ends what still runs in the child's place and takes what it changed.
func (c *child) collect(ctx context.Context) error {
	if c.node == nil {
		return nil
	}
	if c.marks != nil {
		c.stale = c.marks.changed(c.place.ws.FS)
	}
	if err := c.place.Close(); err != nil {
		c.detail = err.Error()
	}
	switch {
	case c.frozen != nil: // nothing of it is taken
	case c.copy == nil:
		c.run.warn(c.place.planted())
	default:
		c.change, c.unread = c.copy.Collect(ctx, c.message())
	}
	return nil
}

// message is that of the commit with what the child changed.
func (c *child) message() string { return fmt.Sprintf("skein: %s %s", c.name, c.d.Label()) }

// siteOf is where the batch sees a copy.
func (b *batch) siteOf(c *worktree.Copy) site {
	s := copySite(c, b.place.ws.Path)
	if b.run.o.NoSandbox {
		s.view = s.root // nothing can show the copy at its parent's path
	}
	return s
}

// copySite is where a copy is seen: its root at the path of the root of the parent's tree,
// so that its workspace is at the path of the parent's.
func copySite(c *worktree.Copy, parent string) site {
	offset := filepath.Clean(c.Tree().Prefix)
	s := site{root: c.Root, view: parent, offset: offset, gitDir: c.GitDir, tree: c.Tree(), copy: c}
	if l := c.Layers(); l != nil {
		s.root, s.layers = l.Base, &sandbox.Layers{Above: l.Above, Upper: l.Upper, Work: l.Work}
	}
	if offset != "." {
		s.view = strings.TrimSuffix(parent, "/"+offset)
	}
	for _, o := range c.Objects {
		s.mounts = append(s.mounts, sandbox.Mount{Host: o})
	}
	return s
}

// lefts renders what was left out, one line each.
func lefts(left []worktree.Left) []string {
	var lines []string
	for _, l := range left {
		lines = append(lines, l.Path+" ("+l.Reason+")")
	}
	return lines
}
