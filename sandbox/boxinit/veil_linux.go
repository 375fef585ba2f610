package boxinit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// veil makes a layer that hides names of the folder below it. A mount over a file goes as soon
// as the host puts another one there, and over what is absent there is none: a name that the
// layer denies stays away whatever the host does.
func veil(dir, below string, names []string) error {
	info, err := os.Stat(below)
	if err != nil {
		return err
	}
	if err := likeness(dir, info); err != nil {
		return err
	}
	for _, name := range names {
		if err := deny(dir, below, name); err != nil {
			return err
		}
	}
	return nil
}

// deny hides one name, or the folder on the way to it that is absent. What is behind a link is
// hidden by its own name.
func deny(dir, below, name string) error {
	elements := strings.Split(name, "/")
	at := elements[0]
	for _, next := range elements[1:] {
		info, err := os.Lstat(filepath.Join(below, at))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || !info.IsDir() {
			return nil // closed to the init, and so to commands
		}
		switch had, err := os.Lstat(filepath.Join(dir, at)); {
		case err != nil:
			if err := likeness(filepath.Join(dir, at), info); err != nil {
				return err
			}
		case !had.IsDir():
			return nil // denied as a whole
		}
		at = filepath.Join(at, next)
	}
	// What the kernel takes for "nothing is here".
	err := unix.Mknod(filepath.Join(dir, at), unix.S_IFCHR, 0)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// likeness makes a folder that shows as the one of info: of two layers the upper one's counts.
func likeness(path string, info fs.FileInfo) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(stat.Uid), int(stat.Gid)) // not of users that are unknown here
	}
	return os.Chmod(path, info.Mode().Perm()) // sticky and the like mean nothing in a read-only one
}
