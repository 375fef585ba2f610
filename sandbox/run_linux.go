package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"skein/sandbox/boxinit"
)

// Run runs a command in the box and waits until it and all its descendants have ended.
// What the command does is in the Output, being killed by its timeout or by ctx included;
// an error means that it was not started, or that the box ended under it: the error then
// wraps [ErrEnded].
func (b *Box) Run(ctx context.Context, c Command) (Output, error) {
	p, err := b.launch(ctx, &b.crew, c, boxinit.Request{})
	if err != nil {
		return Output{}, err
	}
	return p.wait(ctx)
}

// Start starts a command that goes on until it ends by itself, is stopped, or the box is
// closed. ctx bounds the starting only. An error means that nothing was started.
func (b *Box) Start(ctx context.Context, c Command) (*Process, error) {
	p, err := b.launch(ctx, &b.crew, c, boxinit.Request{})
	if err != nil {
		return nil, err
	}
	return p.begun(ctx)
}

// launch starts a command as the request says, which is completed: where, and with what
// environment.
func (b *Box) launch(ctx context.Context, in *crew, c Command, r boxinit.Request) (*Process, error) {
	dir, err := c.dirOf()
	if err != nil {
		return nil, err
	}
	cwd := filepath.Join(b.plan.view, dir)
	env := override(b.plan.env, c.Env, []string{"SKEIN_BOX=1", "PWD=" + cwd})
	r.Argv, r.Dir, r.Env = c.Argv, cwd, env
	return b.hand(ctx, in, c, r)
}

// self runs the init's own program as a command.
func (b *Box) self(ctx context.Context, c Command) (Output, error) {
	p, err := b.hand(ctx, &b.crew, c, boxinit.Request{Self: true, Argv: c.Argv, Dir: "/", Env: b.plan.env})
	if err != nil {
		return Output{}, err
	}
	return p.wait(ctx)
}

// hand hands a complete request to the init.
func (b *Box) hand(ctx context.Context, in *crew, c Command, r boxinit.Request) (*Process, error) {
	select {
	case <-b.gone:
		return nil, fmt.Errorf("run %s: %w", c.Argv[0], b.ended(nil))
	default:
	}
	b.mu.Lock()
	b.last++
	r.ID = b.last
	b.mu.Unlock()
	reply, routes := b.expect(r.ID), b.routes()
	p, err := in.launch(ctx, c, launch{
		most: b.plan.output,
		start: func(out, err *os.File) error {
			files := []*os.File{out, err}
			if c.Stdin != nil {
				_ = c.Stdin.Fd() // makes it block: programs do not expect to be told to try again
				files = append(files, c.Stdin)
			}
			return b.send(r, files...)
		},
		wait: func(life context.Context, started chan<- struct{}) (int, string, error) {
			answer, killed, err := b.follow(life, c.Timeout, r.ID, reply, started)
			return answer.Exit, cmp.Or(killed, answer.Killed), err
		},
		wanted: func(o Output) []Want { return b.wanted(c, o, routes) },
	})
	if err != nil {
		b.forget(r.ID)
	}
	return p, err
}

// follow waits for a command and ends it when its time is over.
func (b *Box) follow(life context.Context, timeout time.Duration, id int64, reply <-chan boxinit.Reply, started chan<- struct{}) (r boxinit.Reply, killed string, err error) {
	limited := life
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(life, timeout)
		defer cancel()
	}
	r, err = b.begun(limited, reply)
	if err == nil && r.Started {
		close(started)
		r, err = b.await(limited, reply)
	}
	if !errors.Is(err, errOver) {
		return r, "", err
	}
	wait := patience
	killed = killedTimeout
	switch {
	case errors.Is(context.Cause(life), errOutput):
		killed = killedOutput
	case life.Err() != nil:
		killed, wait = killedCancelled, closeFor
	}
	if err := b.send(boxinit.Request{ID: id, Kill: true}); err != nil {
		return r, killed, err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(life), wait)
	defer cancel()
	r, err = b.begun(late, reply)
	if err == nil && r.Started { // it was under way
		r, err = b.await(late, reply)
	}
	if errors.Is(err, errOver) {
		err = b.abandon(err) // what cannot be ended in the box ends with it
	}
	return r, killed, err
}
