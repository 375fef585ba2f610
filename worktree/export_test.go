package worktree

import (
	"context"
	"time"
)

// OpenWithin is Open where git must have answered within limit.
func OpenWithin(ctx context.Context, dir string, o Options, limit time.Duration) (*Repo, error) {
	return open(ctx, dir, o, limit)
}

// SetLockTime shortens the wait for other processes.
func (r *Repo) SetLockTime(d time.Duration) { r.lockTime = d }

// SetReclaimTime shortens what one copy may take.
func (r *Repo) SetReclaimTime(d time.Duration) { r.reclaimTime = d }

// SetMostPack bounds what one change brings.
func (r *Repo) SetMostPack(bytes int64) { r.mostPack = bytes }

// WriteWhole writes a file in one step.
func WriteWhole(to string, text []byte) error { return writeWhole(to, text) }
