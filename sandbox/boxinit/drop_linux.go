package boxinit

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropPrivileges gives up, for the calling thread and whatever it executes, every
// capability but the [badge], the means to get one back, and root's identity where asked.
func dropPrivileges(spec Spec) error {
	last, err := lastCapability()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := inheritBadge(); err != nil {
		return err
	}
	for c := range last + 1 {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	if spec.Switch {
		// Else the badge would go with root's identity; an exec takes this back.
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep capabilities: %w", err)
		}
		if err := become(spec.UID, spec.GID); err != nil {
			return err
		}
	}
	return wear(true)
}

// become changes the user of the calling thread only; syscall.Setuid would want all
// threads, which a binary built with cgo cannot do this way.
func become(uid, gid int) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("leave groups: %w", errno)
	}
	g, u := uintptr(gid), uintptr(uid)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, g, g, g); errno != 0 {
		return fmt.Errorf("become group %d: %w", gid, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, u, u, u); errno != 0 {
		return fmt.Errorf("become user %d: %w", uid, errno)
	}
	return nil
}

// lastCapability asks the kernel, which may know capabilities that this program does not.
func lastCapability() (int, error) {
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return 0, fmt.Errorf("count capabilities: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("count capabilities: %w", err)
	}
	return n, nil
}
