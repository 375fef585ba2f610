//go:build !linux

package worktree

import (
	"errors"
	"os"
)

// reflink makes an empty file share the blocks of another one, where the system can.
func reflink(_, _ *os.File) error { return errors.ErrUnsupported }
