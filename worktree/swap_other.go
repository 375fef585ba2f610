//go:build !linux

package worktree

import "errors"

// swap exchanges two files in one step, where the system can.
func swap(_, _ string) error { return errors.ErrUnsupported }

// renameNew renames where nothing stands at the new path, where the system can.
func renameNew(_, _ string) error { return errors.ErrUnsupported }
