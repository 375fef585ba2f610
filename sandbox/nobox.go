package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
)

// ErrNoBox is wrapped by the error for a policy that no tier of this system can hold.
var ErrNoBox = errors.New("no box on this system")

// ErrNoNet is wrapped beside [ErrNoBox] where the same policy without [Policy.Net] may be held.
var ErrNoNet = errors.New("commands cannot have the network in a box here")

// A noBox tells what the system answered.
type noBox struct {
	cause error
}

func (e *noBox) Error() string {
	if errors.Is(e.cause, ErrNoNet) {
		return "open box: " + e.cause.Error()
	}
	return fmt.Sprintf("open box: %v: tried namespaces: %v", ErrNoBox, e.cause)
}

func (e *noBox) Unwrap() []error { return []error{ErrNoBox, e.cause} }

// Hint says what a person can do about it.
func (e *noBox) Hint() string {
	if errors.Is(e.cause, ErrNoNet) {
		return "leave --allow-net away: the network needs Linux 6.12 or newer with Landlock"
	}
	hint := "see skein doctor"
	if r := remedy(e.cause); r != "" {
		hint += "; " + r
	}
	return hint + ", or run commands without a box with --sandbox off"
}

// remedy is what lets a box be opened after all, "" where that is not known.
func remedy(cause error) string {
	switch {
	case anyOf(cause, syscall.ENOSYS):
		return "use Linux 5.12 or newer"
	case anyOf(cause, syscall.EMFILE, syscall.ENFILE):
		return "allow more open files (ulimit -n)"
	case anyOf(cause, syscall.EAGAIN):
		return "allow more processes (ulimit -u)"
	case refusesNamespaces(cause):
		return "allow unprivileged user namespaces on this system"
	case forked(cause):
		return "install skein anew, with its skein-init"
	}
	return ""
}

// refusesNamespaces reports whether the system has answered that there are no namespaces to be
// had.
func refusesNamespaces(cause error) bool {
	return forked(cause) && anyOf(cause, syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL)
}

// forked reports whether no init could be started at all.
func forked(cause error) bool {
	fork := (*fs.PathError)(nil)
	return errors.As(cause, &fork) && fork.Op == "fork/exec"
}

func anyOf(err error, list ...syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && slices.Contains(list, errno)
}
