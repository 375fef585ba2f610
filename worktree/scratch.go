package worktree

import (
	"context"
	"errors"
	"fmt"
)

// Scratch is a [Repo.Copy] of a commit of this run, which was made on a snapshot: of a merge
// that is to be tried, or of the markers of a [ConflictError] that somebody is to solve. What
// is done in it matters only once the caller has collected and merged it: neither a crash nor
// [Repo.Close] keeps it.
func (r *Repo) Scratch(ctx context.Context, s Snapshot, commit, name string) (*Copy, error) {
	s.Commit, s.tree = commit, ""
	c, err := r.Copy(ctx, s, name)
	if err != nil {
		return nil, err
	}
	if err := c.Disown(); err != nil {
		_, left := c.Remove(ctx)
		return nil, errors.Join(fmt.Errorf("make copy %s: %w", name, err), left)
	}
	return c, nil
}
