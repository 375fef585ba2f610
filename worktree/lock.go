package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// errHeld means that another process, or another [Repo] of this one, has the lock.
var errHeld = errors.New("held by another process")

// A lock is a file locked by flock: the kernel frees it when its process dies, however
// it dies. Programs started by this process do not inherit it.
type lock struct{ file *os.File }

// tryLock locks the file at path, making it if need be; errHeld if it is taken, or was just
// removed by who had it.
func tryLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && stands(f, path) {
		return &lock{f}, nil
	}
	_ = f.Close()
	if err == nil {
		err = syscall.EWOULDBLOCK
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// stands reports whether an open file is still the one at its path.
func stands(f *os.File, path string) bool {
	mine, err := f.Stat()
	now, lerr := os.Lstat(path)
	return err == nil && lerr == nil && os.SameFile(mine, now)
}

// lockTime is how long another process may hold the repository: to apply a large change
// takes seconds.
const lockTime = time.Minute

// A LockedError tells that another process held the repository for too long.
type LockedError struct {
	path string
	time time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s was held by another process for %v", e.path, e.time)
}

// Hint says what to do next.
func (e *LockedError) Hint() string {
	return "another run in this repository may be at work, or stopped: end it, or wait; fuser " + shellQuote(e.path) + " tells which process it is"
}

// waitLock locks the file at path as soon as it is free, or gives up after the time
// with a [LockedError]. Polling, since a blocked flock cannot be cancelled.
func waitLock(ctx context.Context, path string, limit time.Duration) (*lock, error) {
	const pause = 10 * time.Millisecond
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &LockedError{path, limit})
	defer cancel()
	for {
		l, err := tryLock(path)
		if !errors.Is(err, errHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (l *lock) release() {
	if l != nil {
		_ = l.file.Close()
	}
}
