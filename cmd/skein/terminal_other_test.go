//go:build !linux

package main

import (
	"errors"
	"os"
)

// openTerminal would return the two ends of a new terminal.
func openTerminal() (person, program *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}
