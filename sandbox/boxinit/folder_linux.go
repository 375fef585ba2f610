package boxinit

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// folder makes a temporary folder, says where, and removes it when in ends, as it does when
// the process at its other end has been killed. It runs outside of any box.
func folder(in io.Reader, out io.Writer) int {
	signal.Ignore(unix.SIGPIPE) // the other end may be gone before it heard the name
	dir, err := os.MkdirTemp("", "skein-probe-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err = fmt.Fprintln(out, dir); err == nil {
		_, _ = io.Copy(io.Discard, in)
	}
	// What ran in a box on the folder may still make a file in it.
	for range 100 {
		if os.RemoveAll(dir) == nil {
			return 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return 1
}
