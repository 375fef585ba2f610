package worktree

import "time"

// SetReclaimTime shortens what one copy may take.
func (r *Repo) SetReclaimTime(d time.Duration) { r.reclaimTime = d }
