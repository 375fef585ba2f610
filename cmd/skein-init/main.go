// Command skein-init is the init of a box: package sandbox starts it, people never do.
//
// It is a program of its own so that an open box costs little memory; without it the
// main binary serves in its place.
package main

import "skein/sandbox/boxinit"

func main() { boxinit.Main() }
