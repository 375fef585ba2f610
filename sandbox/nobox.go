package sandbox

import (
	"errors"
	"fmt"
)

// ErrNoBox is wrapped by the error for a policy that no tier of this system can hold.
var ErrNoBox = errors.New("no box on this system")

// A noBox tells what the system answered.
type noBox struct {
	cause error
}

func (e *noBox) Error() string {
	return fmt.Sprintf("open box: %v: tried namespaces: %v", ErrNoBox, e.cause)
}

func (e *noBox) Unwrap() []error { return []error{ErrNoBox, e.cause} }

// Hint says what a person can do about it.
func (e *noBox) Hint() string {
	return "see skein doctor; allow unprivileged user namespaces on this system, or run commands without a box with --sandbox off"
}
