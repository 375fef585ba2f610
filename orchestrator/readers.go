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

// A sharedBox is the box of all who read one workspace. It is opened at the first command of
// any of them, replaced for all when it has ended, and closed when the last one leaves: who
// comes later has one that shows the workspace as it is then.
type sharedBox struct {
	policy sandbox.Policy

	mu     sync.Mutex
	box    *lazyBox // nil while nobody is here
	guests int
}

// join makes room for a reader, whose commands start in dir, below the view. It must be
// closed.
func (s *sharedBox) join(name, dir string) *guest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guests++; s.box == nil {
		s.box = &lazyBox{policy: s.policy}
	}
	return &guest{shared: s, box: s.box, name: name, dir: dir}
}

func (s *sharedBox) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guests--; s.guests > 0 {
		return nil
	}
	box := s.box
	s.box = nil
	return box.Close()
}

// A guest is a reader's share of a box: a /tmp of its own, and processes that end with it.
type guest struct {
	shared    *sharedBox
	box       *lazyBox
	name, dir string

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
	return errors.Join(err, g.shared.leave())
}
