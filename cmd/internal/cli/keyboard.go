package cli

import "os"

// A keyboard is the terminal that answers are typed at.
type keyboard struct{ *os.File }

// Flush implements [gate.Keyboard].
func (k keyboard) Flush() error { return flushInput(int(k.Fd())) }
