package boxinit

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A launcher runs functions that start commands, one after the other, on a thread that has
// given up more than the rest of the init: what the init goes on doing itself, commands do
// not inherit.
type launcher chan func()

// newLauncher makes one that puts a seccomp program on commands. It ends with the process.
func newLauncher(filter []byte) (launcher, error) {
	l, ready := make(launcher), make(chan error)
	go func() { // ends with the process
		runtime.LockOSThread() // and the runtime starts no thread from this one
		takeTurns(0)
		err := wear(false) // a capability that is not inherited ends with an exec
		if err == nil {
			err = install(filter)
		}
		ready <- err
		for start := range l {
			start()
		}
	}()
	return l, <-ready
}

// do runs start and waits for it.
func (l launcher) do(start func()) {
	done := make(chan struct{})
	l <- func() {
		defer close(done)
		start()
	}
	<-done
}

// badge is the capability that the init keeps. It is good for nothing in a namespace, but the
// kernel lets nobody without it slow down who has it: commands that did would have no
// limits any more, as it is the init that ends them.
const badge = unix.CAP_WAKE_ALARM

// inheritBadge makes the badge one that is inherited, which has to be done while the bounding
// set still has it.
func inheritBadge() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData
	err := unix.Capget(&header, &set[0])
	if err == nil {
		set[badge/32].Inheritable |= 1 << (badge % 32)
		err = unix.Capset(&header, &set[0])
	}
	if err != nil {
		return fmt.Errorf("inherit a capability: %w", err)
	}
	return nil
}

// wear makes the badge the only capability of the calling thread, and if it is for good of
// what the thread executes, too.
func wear(forGood bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var set [2]unix.CapUserData // version 3 takes two
	const bit = 1 << (badge % 32)
	set[badge/32].Permitted = bit
	if forGood {
		set[badge/32].Inheritable = bit
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	if err := unix.Capset(&header, &set[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if !forGood {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, badge, 0, 0); err != nil {
		return fmt.Errorf("keep a capability: %w", err)
	}
	return nil
}

// initSlice is how long the init runs at a time where others want the processor: who asks for
// little gets it soon, from Linux 6.12 on. A crowd of processes that never rest would keep the
// init from ending them for seconds.
const initSlice = 100 * time.Microsecond

// takeTurns sets how long the calling thread, and what it starts, runs at a time; 0 is what
// the kernel gives to all.
func takeTurns(slice time.Duration) {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		attr.Runtime = uint64(slice)
		_ = unix.SchedSetAttr(0, attr, 0) // a wish
	}
}
