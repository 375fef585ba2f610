// Package program runs programs of the user's own choice outside of any box, such as one
// that is a model.
//
// Non-goals: anything that a model asks for. That runs in a box.
package program

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// drain is how long output is waited for that a program's end left in its pipes.
const drain = time.Second

// Run runs a program with this process's environment and returns its exit code, 128 and the
// signal's number if a signal ended it. What the program started and left in its session is
// ended with it; cancelling ctx ends all of it at once. An error means that the program was
// not started.
//
// The program has no terminal: it could not ask anybody, and would wait for ever.
func Run(ctx context.Context, argv []string, input io.Reader, out, errOut io.Writer) (exit int, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, out, errOut
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = drain
	cmd.Cancel = func() error { return endGroup(cmd) }
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start program: %w", err) // which names it
	}
	_ = cmd.Wait() // ProcessState tells
	_ = endGroup(cmd)
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// endGroup ends the processes of the program's group, which its children belong to unless
// they leave it.
func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
