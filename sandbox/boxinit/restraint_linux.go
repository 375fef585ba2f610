package boxinit

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// A restraint is what holds commands besides the tree that they see.
type restraint struct {
	uid, gid int
	other    bool     // that is not the init's own user
	view     string   // what the user must be able to enter
	writable []string // see confine
	filter   []byte
	net      bool // the host's
}

func restraintOf(spec Spec) restraint {
	return restraint{
		uid: spec.UID, gid: spec.GID, other: spec.Switch,
		view: spec.View, writable: writable(spec.Mounts), filter: spec.Filter, net: spec.Net,
	}
}

// put puts it on the calling thread and whatever that executes, for good, and returns the
// version of Landlock in it. After an error nothing may be started from the thread.
func (r restraint) put() (landlock int, err error) {
	if err := r.dropPrivileges(); err != nil {
		return 0, err
	}
	if err := unix.Access(r.view, unix.X_OK); err != nil {
		return 0, &policyFault{FaultPath, &fs.PathError{Op: "enter", Path: r.view, Err: err}}
	}
	if landlock, err = confine(r.writable); err != nil {
		return 0, err
	}
	if r.net && landlock < scopes {
		// Abstract sockets belong to the network: buses and displays listen there.
		return 0, &policyFault{FaultNet, fmt.Errorf("abstract sockets need landlock of version %d to be held: this kernel has %d", scopes, landlock)}
	}
	return landlock, install(r.filter)
}

// badge is the one capability that the thread keeps to itself: what it executes has none. It is
// good for nothing in a namespace, but the kernel lets nobody without it slow down or look
// into a thread that has it. Commands that did would be ended late, or not at all.
const badge = unix.CAP_WAKE_ALARM

// dropPrivileges gives up every capability but the badge, the means to get one back, and
// root's identity where commands have another one.
func (r restraint) dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	for c := uintptr(0); ; c++ { // the kernel may know some that this program does not
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > badge {
			break // there are no more
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	if r.other {
		// Else the badge would go with root's identity; an exec takes this back.
		if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("keep capabilities: %w", err)
		}
		if err := become(r.uid, r.gid); err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData // version 3 takes two
	set[badge/32].Permitted = 1 << (badge % 32)
	if err := unix.Capset(&header, &set[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return closeToOthers() // another identity may have opened it
}

// closeToOthers has nobody look into this process: commands run as the same user.
func closeToOthers() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the init to others: %w", err)
	}
	return nil
}

// become changes the user of the calling thread only; syscall.Setuid would change all.
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
