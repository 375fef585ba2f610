package boxinit

import (
	"errors"
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock can hold back of what changes files, by the version that brought it.
const (
	changes1 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	changes2 = unix.LANDLOCK_ACCESS_FS_REFER
	changes3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	changes5 = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// scopes is the version that keeps signals and abstract sockets inside.
const scopes = 6

// confine puts Landlock on the calling thread and whatever it executes, as far as this
// kernel has it, and returns its version; 0 is none. The mounts say the same already:
// this holds where they do not, as for a FIFO or a socket on a read-only mount. Files may be
// changed at the writable paths and below.
func confine(writable []string) (version int, err error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EOPNOTSUPP) || errno == 0 && v < 2 {
		return 0, nil // version 1 forbids to move a file from one folder to another
	}
	if errno != 0 {
		return 0, fmt.Errorf("ask for landlock: %w", errno)
	}
	version = int(v)
	rights := uint64(changes1 | changes2)
	var outside, scoped uint64 // handled and allowed nowhere
	if version >= 3 {
		rights |= changes3
	}
	if version >= 5 {
		rights |= changes5
	}
	if version >= scopes {
		scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if version >= 9 {
		outside = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX // those that were bound in the box stay in reach
	}
	set := unix.LandlockRulesetAttr{Handled_access_fs: rights | outside, Scoped: scoped}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0)
	if errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	for _, path := range writable {
		if err := permit(int(fd), path, rights); err != nil && !changed(err) { // nothing is there to be changed
			return 0, fmt.Errorf("landlock: %s: %w", path, err)
		}
	}
	const device = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | changes3 | changes5
	if err := permit(int(fd), "/dev", device&rights); err != nil {
		return 0, fmt.Errorf("landlock: /dev: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return 0, fmt.Errorf("landlock: %w", errno)
	}
	return version, nil
}

// writable lists the folders that commands may change.
func writable(mounts []Mount) (paths []string) {
	for _, m := range mounts {
		switch {
		case !m.Writable && m.Kind != Overlay:
		case m.Kind == Layers:
			for _, scope := range m.Scopes {
				paths = append(paths, filepath.Join(m.Target, scope))
			}
		default:
			paths = append(paths, m.Target)
		}
	}
	return paths
}

// permit allows what is handled beneath a path.
func permit(set int, path string, rights uint64) error {
	parent, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(parent) }()
	var stat unix.Stat_t
	if err := unix.Fstat(parent, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= unix.LANDLOCK_ACCESS_FS_WRITE_FILE | changes3 | changes5
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(parent)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
