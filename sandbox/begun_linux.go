package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox/boxinit"
)

// beginFor is how long a command may take to begin before it is looked at why.
const beginFor = 100 * time.Millisecond

// begun waits until the init says that a command runs, or why not.
func (b *Box) begun(ctx context.Context, reply <-chan boxinit.Reply) (boxinit.Reply, error) {
	for {
		soon, cancel := context.WithTimeout(ctx, beginFor)
		r, err := b.await(soon, reply)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, errOver) {
			return r, err
		}
		b.endStopped()
	}
}

// endStopped ends the processes of the init that were stopped before they executed anything.
// Until then a process is of the commands' user already, so that one of them may stop it, and
// the init waits for it: for good, and nobody is started, looked at or ended meanwhile. Only
// from outside it can be helped.
func (b *Box) endStopped() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if state, parent, _, _ := stat(pid); state != "T" || parent != b.init.Process.Pid {
			continue
		}
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// It has the memory of the init still. Asked now: the number may be another's by now.
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		_, parent, _, _ := stat(pid)
		if err == nil && parent == b.init.Process.Pid && bytes.HasPrefix(line, []byte(boxinit.Name+"\x00"+boxinit.ArgServe)) {
			_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // it has ended
		}
		_ = unix.Close(handle)
	}
}
