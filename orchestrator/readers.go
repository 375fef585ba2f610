package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"

	"skein/sandbox"
)

// An audience is all who only read one workspace: they share its box, which is opened at the first
// command of any of them, and the handle on its files: to work out what they may not see takes
// milliseconds, and a thousand readers would each do so.
type audience struct {
	box   shared[*lazyBox]
	files shared[*sandbox.Files]
}

func (r *run) audience(s site) *audience {
	box, files := r.policy(s, false), s.filePolicy(false)
	return &audience{
		shared[*lazyBox]{open: func() (*lazyBox, error) { return &lazyBox{policy: box, before: r.makeStore}, nil }},
		shared[*sandbox.Files]{open: func() (*sandbox.Files, error) { return sandbox.OpenFiles(files) }},
	}
}

// A view is one reader's share of the files.
type view struct {
	*sandbox.Files
	leave func() error
}

// Close gives the share back.
func (v view) Close() error { return v.leave() }

// A guest is a reader's share of a box: a /tmp of its own, and processes that end with it.
type guest struct {
	box       *lazyBox // of all who read the workspace, opened at the first command of any of them
	leave     func() error
	name, dir string // its commands start in dir, below the view

	mu     sync.Mutex
	in     *sandbox.Box   // where the room is
	room   *sandbox.Guest // nil before the first command
	closed bool
}

// Run implements [tools.Exec].
func (g *guest) Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error) {
	c.Dir = path.Join(g.dir, c.Dir)
	box, err := g.box.open(ctx)
	if err != nil {
		return sandbox.Output{}, err
	}
	room, err := g.enter(box)
	if err != nil {
		return sandbox.Output{}, err
	}
	out, err := room.Run(ctx, c)
	if errors.Is(err, sandbox.ErrEnded) {
		g.box.forget(box)
	}
	return out, err
}

// enter gives the room of the guest in the box, which may be another one than before.
func (g *guest) enter(box *sandbox.Box) (*sandbox.Guest, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("run: the agent has ended: %w", os.ErrClosed)
	}
	if g.in == box {
		return g.room, nil
	}
	room, err := box.Guest(g.name)
	if err != nil {
		return nil, err
	}
	g.in, g.room = box, room // the old one has ended with its box
	return room, nil
}

// Close ends what still runs of the reader. No command runs afterwards.
func (g *guest) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	var err error
	if g.room != nil {
		err = g.room.Close()
	}
	return errors.Join(err, g.leave())
}
