package gate

import (
	"os"

	"golang.org/x/sys/unix"
)

// flush drops what was typed into a terminal and not yet read. Other files keep what they have.
func flush(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	}
}
