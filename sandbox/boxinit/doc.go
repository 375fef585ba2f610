// Package boxinit is the program inside a box, pid 1 of its namespaces.
//
// It runs in two stages. The first holds every capability of its own user namespace: it
// reads a [Spec] from the control socket, builds the mounts, gives up all privileges and
// executes itself. The second starts the commands it is asked for, reaps, and ends those
// of them that outstay their leader. When the control socket closes, it exits, and the
// kernel ends everything else in the box.
//
// Two stages, because the Go runtime has threads and privileges belong to a thread: only
// an exec makes what one thread gave up true for the whole process.
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
	ArgSetup  = "setup"  // stage one: what package sandbox starts
	argServe  = "serve"  // stage two
	ArgTidy   = "tidy"   // a command that removes a folder, whatever its modes
	ArgProbe  = "probe"  // a command of the self-test, see [Probe]
	ArgFolder = "folder" // outside of boxes: keeps a temporary folder as long as its standard input is open
)

// ControlFD is the descriptor of the control socket in the init.
const ControlFD = 3

// IsInit reports whether this process was started to serve as an init.
func IsInit() bool {
	return len(os.Args) > 0 && filepath.Base(os.Args[0]) == Name
}
