package sandbox

import "skein/sandbox/boxinit"

// IsInit reports whether this process was started to serve as the init of a box.
func IsInit() bool { return boxinit.IsInit() }

// Main serves as init and does not return. A program whose own file may be used as init
// (see [Policy.Init]) calls it first thing in main, or in TestMain, when [IsInit].
func Main() { boxinit.Main() }
