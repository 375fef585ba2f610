// Skein is a coding agent for the terminal whose centre is delegation.
package main

import (
	"os"

	"skein/cmd/internal/cli"
	"skein/sandbox"
)

func main() {
	if sandbox.IsInit() { // a box of ours started this program as its init
		sandbox.Main()
		return
	}
	os.Exit(cli.Main())
}
