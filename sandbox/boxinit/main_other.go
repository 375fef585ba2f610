//go:build !linux

package boxinit

import (
	"fmt"
	"os"
)

// Main says that this system has no boxes of this kind, and ends.
func Main() {
	fmt.Fprintln(os.Stderr, "skein-init: boxes of this kind need Linux")
	os.Exit(2)
}
