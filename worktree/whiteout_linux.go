package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// What the kernel keeps in the layers of an overlay that an ordinary user mounts.
const (
	opaqueName = "user.overlay.opaque" // "y": nothing of this folder in the layers below is seen
	probeName  = "user.overlay.skein"
)

// whiteout takes a name away that layers below have. Everybody may make one.
func whiteout(at string) error {
	if err := unix.Mknod(at, unix.S_IFCHR, int(unix.Mkdev(0, 0))); err != nil {
		return fmt.Errorf("make whiteout %s: %w", at, err)
	}
	return nil
}

// isWhiteout reports whether that is a whiteout. To all but an overlay it is a device
// that cannot be opened.
func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

// isOpaque reports whether a folder of an upper layer hides the one below it.
func isOpaque(at string) (bool, error) {
	var value [2]byte
	n, err := unix.Lgetxattr(at, opaqueName, value[:])
	switch {
	case err == nil:
		return n == 1 && value[0] == 'y', nil
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ERANGE), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EACCES):
		return false, nil
	}
	return false, fmt.Errorf("read mark of %s: %w", at, err)
}

// tryLayers reports by its error that the file system of a folder cannot hold layers.
func tryLayers(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	probe, err := os.MkdirTemp(dir, probing)
	if err != nil {
		return err
	}
	err = whiteout(filepath.Join(probe, "gone"))
	if err == nil {
		err = unix.Lsetxattr(probe, probeName, []byte("y"), 0)
	}
	return errors.Join(err, os.RemoveAll(probe))
}
