package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"skein/sandbox/boxinit"
)

// Bare runs commands without a box, for people who chose that: nothing is held back, and a
// process that leaves its session can outlive its command. Set the fields before the first
// Run. Its methods may be called at the same time.
type Bare struct {
	Dir string   // where commands start
	Env []string // environment of commands, whole; see [Environment]

	crew crew
}

// Run runs a command and waits until it and the rest of its session have ended, as
// [Box.Run] does.
func (b *Bare) Run(ctx context.Context, c Command) (Output, error) {
	p, err := b.launch(ctx, c)
	if err != nil {
		return Output{}, err
	}
	return p.wait(ctx)
}

// Start starts a command that goes on by itself, as [Box.Start] does.
func (b *Bare) Start(ctx context.Context, c Command) (*Process, error) {
	return b.launch(ctx, c)
}

func (b *Bare) launch(ctx context.Context, c Command) (*Process, error) {
	dir, err := c.dirOf()
	if err != nil {
		return nil, err
	}
	cwd := filepath.Join(b.Dir, dir)
	env := override(b.Env, c.Env, []string{"PWD=" + cwd})
	program, err := boxinit.LookPath(c.Argv[0], cwd, env)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	// The life of the command ends the whole session, see attend; exec would end its leader
	// alone.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program)
	cmd.Args, cmd.Dir, cmd.Env = c.Argv, cwd, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	return b.crew.launch(ctx, c, launch{
		start: func(out, err *os.File) error {
			cmd.Stdout, cmd.Stderr = out, err
			return cmd.Start()
		},
		wait: func(life context.Context, _ chan<- struct{}) (int, string, error) {
			exit, killed := attend(life, cmd, c.Timeout)
			return exit, killed, nil
		},
	})
}

// attend waits for a started command and ends what is left of it.
func attend(ctx context.Context, cmd *exec.Cmd, timeout time.Duration) (exit int, killed string) {
	ended := make(chan struct{})
	go func() { // waited for below
		defer close(ended)
		_ = cmd.Wait() // ProcessState tells
	}()
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ended:
	case <-over:
		killed = killedTimeout
	case <-ctx.Done():
		killed = killedCancelled
	}
	endSession(cmd.Process.Pid)
	<-ended
	endSession(cmd.Process.Pid) // what was started while the first were being ended
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), killed
	}
	return cmd.ProcessState.ExitCode(), killed
}

// Close ends the commands that still run and waits for them. It may be called more than once.
func (b *Bare) Close() error {
	b.crew.close()
	return nil
}

// endSession kills the processes of a session that its leader's id names, and those that
// come from it.
func endSession(leader int) {
	// Stopped first: none can start another while the rest is being found, nor leave its
	// children without a trace of where they came from.
	found := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		for _, pid := range descendants(leader) {
			if !found[pid] {
				found[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
	}
	for pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL) // all there is to be found on other systems
}
