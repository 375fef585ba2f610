//go:build !linux

package gate

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush drops what was typed into a terminal and not yet read. Other files keep what they have.
func flush(f *os.File) {
	const read = 1 // FREAD: the queue of what comes in
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, read) })
	}
}
