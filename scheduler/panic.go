package scheduler

import (
	"context"
	"fmt"

	"github.com/sourcegraph/conc/panics"
)

// A PanicError is the error of a job whose Run or Settle panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of the goroutine, for the journal
}

// Error names the value; the stack is left to those who want it.
func (e *PanicError) Error() string { return fmt.Sprintf("job panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// try calls fn and turns a panic into an error.
func try(ctx context.Context, fn func(context.Context) error) (err error) {
	if r := panics.Try(func() { err = fn(ctx) }); r != nil {
		return &PanicError{Value: r.Value, Stack: r.Stack}
	}
	return err
}
