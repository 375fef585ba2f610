package boxinit

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cloneTree takes what stands at path, with what is mounted below it, attached nowhere. A
// path that has a symbolic link in it was changed since it was found, and may lead anywhere.
func cloneTree(path string) (int, error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(at) }()
	// Recursive: a folder may not be taken without the mounts that cover parts of it.
	return unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}

// newFileSystem makes a file system from pairs of option and value; an empty value makes
// the option a flag.
func newFileSystem(kind string, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("new %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(fs) }()
	for i := 0; i+1 < len(options); i += 2 {
		if options[i+1] == "" {
			err = unix.FsconfigSetFlag(fs, options[i])
		} else {
			err = unix.FsconfigSetString(fs, options[i], options[i+1])
		}
		if err != nil {
			return -1, fmt.Errorf("new %s: option %s: %w", kind, options[i], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("new %s: %w", kind, err)
	}
	attr := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	switch kind {
	case "proc":
		attr |= unix.MOUNT_ATTR_NOEXEC
	case "devpts":
		attr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return -1, fmt.Errorf("mount new %s: %w", kind, err)
	}
	return fd, nil
}

func moveTo(tree int, target string) error {
	return unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// restrict adds flags to a mount and to all that is mounted below it.
func restrict(dir int, path string, attr uint64) error {
	flags := uint(unix.AT_RECURSIVE)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return setFlags(dir, path, flags, attr)
}

func setFlags(dir int, path string, flags uint, attr uint64) error {
	return unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: attr})
}

// mountPoint makes sure that the tree can be attached at target.
func mountPoint(tree int, target string) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	var stat unix.Stat_t
	if err := unix.Fstat(tree, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, nil, 0o644)
}
