package orchestrator

import (
	"context"

	"skein/agent/journal"
	"skein/worktree"
)

// Readers says what readers work in.
type Readers string

// What that may be.
const (
	Live   Readers = "live"     // the tree of their parent, as it is from moment to moment
	Frozen Readers = "snapshot" // a copy each of that tree as it was when they were asked for, thrown away with them
)

// copyFor makes the copy that a child of this batch works in.
func (b *batch) copyFor(ctx context.Context, c *child) (cp *worktree.Copy, snap worktree.Snapshot, err error) {
	if snap, err = b.snapshot(ctx); err != nil {
		return nil, snap, err
	}
	err = b.place.onTree(ctx, func(*worktree.Tree) (err error) { // of which more than the snapshot comes along
		if c.start != "" {
			cp, err = b.run.repo.Scratch(ctx, snap, c.start, c.name)
		} else {
			cp, err = b.run.repo.Copy(ctx, snap, c.name)
		}
		return err
	})
	if err != nil {
		return nil, snap, err
	}
	b.run.journal.Append(c.name, &journal.Copied{Backend: cp.Backend, Why: cp.Why, Path: cp.Root})
	return cp, snap, nil
}

// freeze makes a copy one that is thrown away, whatever becomes of the run.
func (c *child) freeze(cp *worktree.Copy) error {
	c.frozen = cp
	return cp.Disown()
}

// thaw throws the copy of a reader away. Its place is closed.
func (c *child) thaw(ctx context.Context, r *run) {
	if c.frozen == nil {
		return
	}
	if _, err := c.frozen.Remove(ctx); err != nil {
		r.notice("the copy of "+c.name+" was not removed: "+err.Error(), "it is removed at the next start")
	}
}
