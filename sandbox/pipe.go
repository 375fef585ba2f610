package sandbox

import (
	"os"
	"syscall"
)

// pipe is os.Pipe with a blocking end for the command: programs do not expect to be told
// to try again.
func pipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	raw, err := w.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), false) })
	}
	if err != nil {
		_, _ = r.Close(), w.Close()
		return nil, nil, err
	}
	return r, w, nil
}
