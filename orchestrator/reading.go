package orchestrator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"skein/sandbox"
	"skein/worktree"
)

// A reading is a box in which git reads what a writer left. None of the writer's processes
// is in it, and it ends with the reading.
type reading struct{ box *sandbox.Box }

var _ worktree.Box = reading{}

// reading opens one; nil where there are no boxes. It is called once the run is prepared.
func (r *run) reading(ctx context.Context, reach worktree.Reach) (worktree.Box, error) {
	if r.readsBare() != "" {
		return nil, nil
	}
	p := sandbox.Policy{
		Workspace: reach.Scratch, Writable: true, Hidden: r.repo.Private(),
		Env: sandbox.Environment(r.o.Environ), Init: r.o.Init, Readable: r.o.Readable, // git may be there
	}
	for _, dir := range reach.Visible {
		p.ReadOnly = append(p.ReadOnly, sandbox.Mount{Host: dir})
	}
	box, err := sandbox.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	return reading{box}, nil
}

// readsBare says why git reads what writers left outside of a box; "" if it is in one.
func (r *run) readsBare() string {
	switch {
	case r.o.NoSandbox:
		return "the sandbox is off"
	case r.noBox != nil:
		return r.noBox.Error()
	}
	return ""
}

// Git implements [worktree.Box].
func (b reading) Git(ctx context.Context, c worktree.Call) (worktree.Answer, error) {
	in, end, err := feed(c.Stdin)
	if err != nil {
		return worktree.Answer{}, err
	}
	defer end()
	argv := c.Argv
	if c.Dir != "" { // it lies outside of what is the workspace to this box
		argv = append([]string{argv[0], "-C", c.Dir}, argv[1:]...)
	}
	var stdout, stderr bytes.Buffer // whole: the box bounds what a command prints
	out, err := b.box.Run(ctx, sandbox.Command{Argv: argv, Env: c.Env, Stdin: in, Limit: 1, Out: &stdout, Err: &stderr})
	if err == nil && out.Killed != "" {
		err = fmt.Errorf("ended in its box: %s", out.Killed)
	}
	return worktree.Answer{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: out.Exit}, err
}

// Close implements [worktree.Box].
func (b reading) Close() error { return b.box.Close() }

// feed gives a command an input that is no file. The function it returns ends that.
func feed(from io.Reader) (*os.File, func(), error) {
	if from == nil {
		return nil, func() {}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	var fed sync.WaitGroup
	fed.Go(func() { // the function we return waits
		_, _ = io.Copy(w, from) // a command need not read all
		_ = w.Close()
	})
	return r, func() {
		_ = r.Close()
		fed.Wait()
	}, nil
}
