package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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

	mu      sync.Mutex // guards the fields just below
	running map[*context.CancelFunc]bool
	closed  bool
	group   sync.WaitGroup
}

// Run runs a command and waits until it and the rest of its session have ended, as
// [Box.Run] does.
func (b *Bare) Run(ctx context.Context, c Command) (Output, error) {
	dir, err := c.dirOf()
	if err != nil {
		return Output{}, err
	}
	if ctx.Err() != nil {
		return Output{}, fmt.Errorf("run %s: %w", c.Argv[0], context.Cause(ctx))
	}
	ctx, done, err := b.enter(ctx)
	if err != nil {
		return Output{}, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	defer done()
	cwd := filepath.Join(b.Dir, dir)
	env := override(b.Env, c.Env, []string{"PWD=" + cwd})
	program, err := boxinit.LookPath(c.Argv[0], cwd, env)
	if err != nil {
		return Output{}, fmt.Errorf("run: %w", err)
	}
	capture, err := newCapture(c)
	if err != nil {
		return Output{}, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	// ctx ends the whole session, see attend; exec would end its leader alone.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program)
	cmd.Args, cmd.Dir, cmd.Env = c.Argv, cwd, env
	cmd.Stdout, cmd.Stderr = capture.out(), capture.errOut()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	capture.started()
	if err != nil {
		_ = capture.finish()
		return Output{}, fmt.Errorf("run %s: %w", c.Argv[0], err)
	}
	exit, killed := attend(ctx, cmd, c.Timeout)
	out := capture.finish()
	out.Exit, out.Killed = exit, killed
	return out, nil
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

// enter registers a command, so that Close can end it.
func (b *Bare) enter(ctx context.Context) (context.Context, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, fmt.Errorf("no more commands here: %w", os.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	if b.running == nil {
		b.running = map[*context.CancelFunc]bool{}
	}
	b.running[&cancel] = true
	b.group.Add(1)
	return ctx, func() {
		cancel()
		b.mu.Lock()
		delete(b.running, &cancel)
		b.mu.Unlock()
		b.group.Done()
	}, nil
}

// Close ends the commands that still run and waits for them. It may be called more than once.
func (b *Bare) Close() error {
	b.mu.Lock()
	b.closed = true
	for cancel := range b.running {
		(*cancel)()
	}
	b.mu.Unlock()
	b.group.Wait()
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
