package worktree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// swap exchanges two files, or whatever stands at the two paths, in one step.
// [errors.ErrUnsupported] means that this file system cannot.
func swap(a, b string) error { return rename2(a, b, unix.RENAME_EXCHANGE) }

// renameNew renames where nothing stands at the new path, else it is
// [io/fs.ErrExist]. [errors.ErrUnsupported] means that this file system cannot.
func renameNew(from, to string) error { return rename2(from, to, unix.RENAME_NOREPLACE) }

func rename2(from, to string, flags uint) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		err = errors.ErrUnsupported
	}
	return fmt.Errorf("rename %s to %s: %w", from, to, err)
}
