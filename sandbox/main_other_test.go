//go:build !linux

package sandbox_test

import (
	"context"
	"errors"
)

// helpLinux has nothing to help elsewhere.
func helpLinux(_ context.Context, what string, _ []string) error {
	return errors.New("unknown helper " + what)
}
