// Package boxinit is the program inside a box, pid 1 of its namespaces.
//
// It reads a [Spec] from the control socket and builds the mounts. Then it starts the commands
// it is asked for, reaps, and ends those of them that outstay their leader. When the control
// socket closes, it exits, and the kernel ends everything else in the box.
//
// It keeps the capabilities that it has in its own user namespace. Commands never had them:
// privileges belong to a thread, and those threads that start commands gave up theirs, for
// good. What a thread starts cannot have more.
//
// It is written without net and os/exec, so that it stays small. Only package sandbox and
// the two main packages may import it.
package boxinit

import (
	"os"
	"path/filepath"
)

// Name is what argv[0] must be for a binary to serve as init.
const Name = "skein-init"

// Paths inside a box that belong to the box itself.
const (
	Home    = "/run/skein/home"    // HOME, private to the box
	Caches  = "/run/skein/cache"   // parent of build caches, throw-away layers over the user's
	Objects = "/run/skein/objects" // parent of the object stores of [sandbox.Policy]
)

// Arguments that select what the init does; they follow argv[0].
const (
	ArgServe  = "serve"  // the life of an init
	ArgProbe  = "probe"  // a command of the self-test, see [Probe]
	ArgFolder = "folder" // outside of boxes: keeps a temporary folder as long as its standard input is open
)

// ControlFD is the descriptor of the control socket in the init.
const ControlFD = 3

// IsInit reports whether this process was started to serve as an init.
func IsInit() bool {
	return len(os.Args) > 0 && filepath.Base(os.Args[0]) == Name
}
