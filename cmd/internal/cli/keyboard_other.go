//go:build !linux

package cli

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal and not yet read.
func flushInput(fd int) error {
	const read = 1 // FREAD of the BSDs: the input's queue
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read)
}
