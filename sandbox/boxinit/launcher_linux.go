package boxinit

import (
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A launcher runs functions that start commands, one after the other, on a thread of its own
// that is under a [restraint]: commands inherit what that thread gave up, for good, and the
// rest of the init did not.
type launcher chan func()

// newLauncher makes one, and returns the version of Landlock that holds it. The thread does
// first before it gives anything up. To close the launcher ends the thread.
func newLauncher(first func() error, r restraint) (l launcher, landlock int, err error) {
	l = make(launcher)
	ready := make(chan struct{})
	go func() { // newLauncher waits until the thread is ready, then who closes the launcher ends it
		runtime.LockOSThread() // for good: the runtime starts no thread from this one, and it ends with this function
		err = first()
		if err == nil && unix.Gettid() == unix.Getpid() {
			err = errors.New("the init's first thread would be restrained") // by which the kernel knows the init
		}
		if err == nil {
			setSlice(0, 0)
			landlock, err = r.put()
		}
		failed := err != nil
		close(ready)
		if failed {
			return
		}
		for start := range l {
			start()
		}
	}()
	<-ready
	return l, landlock, err
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

// initSlice is how long the init runs at a time where others want the processor: who asks for
// little gets it soon, from Linux 6.12 on. A crowd of processes that never rest would keep the
// init from ending them for seconds.
const initSlice = 100 * time.Microsecond

// takeTurns has all threads of the init ask for little, and those that they start. It must be
// called when /proc shows the processes of the box.
func takeTurns() {
	dir, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(dir) }()
	numbered(dir, func(thread int) bool {
		setSlice(thread, initSlice)
		return true
	})
}

// setSlice sets how long a thread, and what it starts from then on, runs at a time; 0 is what
// the kernel gives to all, and thread 0 the calling one.
func setSlice(thread int, slice time.Duration) {
	if attr, err := unix.SchedGetAttr(thread, 0); err == nil {
		attr.Runtime = uint64(slice)
		_ = unix.SchedSetAttr(thread, attr, 0) // a wish
	}
}
