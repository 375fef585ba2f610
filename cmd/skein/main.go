// Skein is a coding agent for the terminal whose centre is delegation.
package main

import (
	"os"
	"runtime/debug"

	"skein/cmd/internal/cli"
	"skein/sandbox"
)

func main() {
	if sandbox.IsInit() { // a box of ours started this program as its init
		sandbox.Main()
		return
	}
	if os.Getenv("GOGC") == "" {
		// What a run holds grows with its agents and is small: collecting half as often costs
		// tens of megabytes for a thousand of them, and saves a sixth of the work.
		debug.SetGCPercent(200)
	}
	os.Exit(cli.Main())
}
