package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// A Process is a command that was started and goes on by itself, until it ends, is stopped,
// or what it was started in is closed. Its methods may be called at the same time.
type Process struct {
	id      int64
	capture *capture
	end     context.CancelFunc // ends the life of the command
	started chan struct{}      // closed when the command is known to run
	done    chan struct{}      // closed when it and all that it started have ended

	out Output // these two are to be read after done
	err error
}

// ID is the number of the process, unlike that of any other of its box.
func (p *Process) ID() int64 { return p.id }

// Output returns what the process has printed from byte since on, both streams as they came:
// what is kept of it, see [Command.Limit], how many bytes of it were dropped, and where to go
// on. It may be called while the process runs and after it has ended.
func (p *Process) Output(since int64) (text []byte, dropped, next int64) {
	p.capture.mu.Lock()
	defer p.capture.mu.Unlock()
	return p.capture.combined.since(since)
}

// Done is closed when the process and all its descendants have ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Result waits for the end of the process and tells what [Box.Run] would.
func (p *Process) Result() (Output, error) {
	<-p.done
	return p.out, p.err
}

// Stop ends the process with all its descendants and waits until they have ended, or until
// ctx is over. Stopping what has ended does nothing.
func (p *Process) Stop(ctx context.Context) error {
	p.end()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop process %d: %w", p.id, context.Cause(ctx))
	}
}

// wait is Result for a command that ends with ctx.
func (p *Process) wait(ctx context.Context) (Output, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end()
	}
	return p.Result()
}

// begun waits until a process is known to run. If it never does, or ctx is over first, there
// is none.
func (p *Process) begun(ctx context.Context) (*Process, error) {
	select {
	case <-p.started:
		return p, nil
	case <-p.done:
	case <-ctx.Done():
		p.end()
		<-p.done
		return nil, fmt.Errorf("start: %w", context.Cause(ctx))
	}
	if _, err := p.Result(); err != nil {
		return nil, err
	}
	return p, nil
}

// errOutput ends the life of a command that prints too much.
var errOutput = errors.New("too much output")

// A launch is how a command is started somewhere and waited for.
type launch struct {
	most  int64 // bytes that it may print; 0 = no limit
	start func(out, err *os.File) error
	// wait waits for the end of what was started, and ends it when life does. It may close
	// started earlier than that.
	wait func(life context.Context, started chan<- struct{}) (exit int, killed string, err error)
	// wanted tells what a command that failed wanted; nil where nothing is kept from it.
	wanted func(Output) []Want
}

// A crew is the processes that end together. Its zero value is ready.
type crew struct {
	mu      sync.Mutex // guards the fields just below
	last    int64
	running map[*Process]bool
	closed  bool
	group   sync.WaitGroup
}

// launch starts a command that lives until its end is called or the crew is closed.
func (c *crew) launch(ctx context.Context, command Command, l launch) (*Process, error) {
	name := command.Argv[0]
	if ctx.Err() != nil {
		return nil, fmt.Errorf("run %s: %w", name, context.Cause(ctx))
	}
	life, endFor := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func() { endFor(nil) }
	p := &Process{end: end, started: make(chan struct{}), done: make(chan struct{})}
	if !c.enter(p) {
		end()
		return nil, fmt.Errorf("run %s: no more commands here: %w", name, os.ErrClosed)
	}
	var err error
	if p.capture, err = newCapture(command, l.most, func() { endFor(errOutput) }); err == nil {
		err = l.start(p.capture.out(), p.capture.errOut())
		if p.capture.started(); err != nil {
			end()
			_ = p.capture.finish(life)
		}
	}
	if err != nil {
		c.leave(p)
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	go func() { // close waits for it, through the group
		defer c.leave(p)
		defer close(p.done)
		exit, killed, err := l.wait(life, p.started)
		if killed != "" || err != nil {
			end() // whoever is given the output has no more time either
		}
		p.out = p.capture.finish(life)
		if p.out.Exit, p.out.Killed = exit, killed; err != nil {
			p.err = fmt.Errorf("run %s: %w", name, err)
		} else if exit != 0 && killed == "" && l.wanted != nil {
			p.out.Wanted = l.wanted(p.out)
		}
	}()
	return p, nil
}

func (c *crew) enter(p *Process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.running == nil {
		c.running = map[*Process]bool{}
	}
	c.last++
	p.id, c.running[p] = c.last, true
	c.group.Add(1)
	return true
}

func (c *crew) leave(p *Process) {
	p.end()
	c.mu.Lock()
	delete(c.running, p)
	c.mu.Unlock()
	c.group.Done()
}

// close ends the processes that still run and waits for them. It may be called more than once.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	for p := range c.running {
		p.end()
	}
	c.mu.Unlock()
	c.group.Wait()
}
