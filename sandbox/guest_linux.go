package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"skein/sandbox/boxinit"
)

// A Guest is one of several users of a box, such as the readers of one state of a workspace.
// It has a /tmp, a /dev/shm and a HOME of its own, and its processes end with it. All else is
// shared with the other guests, who run as the same user: they see each other's processes, which
// where Landlock is they can neither end nor look into, see [Held], and what lies in the build
// caches: what one writes there, such as a config.toml of cargo's, the programs of another obey. Where
// all guests together keep more in their places than [Limits] have for that, the one that has most
// loses what lies there, whether it runs something or not, and its commands are ended for
// "memory"; its next one finds the places empty. Its methods may be called at the same time.
type Guest struct {
	box  *Box
	name string
	crew crew

	closing sync.Once
}

// Guest makes room for a guest, under a name that nobody else has at the time. The guest must
// be closed, and ends with the box at the latest.
func (b *Box) Guest(name string) (*Guest, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case name == "":
		return nil, errors.New("guest: it has no name")
	case b.closed:
		return nil, fmt.Errorf("guest %s: %w", name, &endedError{})
	case b.guests[name] != nil:
		return nil, fmt.Errorf("guest %s: there is one of that name", name)
	}
	g := &Guest{box: b, name: name}
	b.guests[name] = g
	return g, nil
}

// Run is [Box.Run] for the guest.
func (g *Guest) Run(ctx context.Context, c Command) (Output, error) {
	p, err := g.box.launch(ctx, &g.crew, c, boxinit.Request{Guest: g.name})
	if err != nil {
		return Output{}, err
	}
	return p.wait(ctx)
}

// Start is [Box.Start] for the guest. The process ends with the guest.
func (g *Guest) Start(ctx context.Context, c Command) (*Process, error) {
	p, err := g.box.launch(ctx, &g.crew, c, boxinit.Request{Guest: g.name})
	if err != nil {
		return nil, err
	}
	return p.begun(ctx)
}

// Close ends the guest's processes and waits for them; what they left in its /tmp is gone. It
// may be called more than once.
func (g *Guest) Close() error {
	g.crew.close()
	var err error
	g.closing.Do(func() { err = g.leave() })
	return err
}

func (g *Guest) leave() error {
	err := g.box.send(boxinit.Request{Guest: g.name, Leave: true})
	g.box.mu.Lock()
	delete(g.box.guests, g.name) // now: whoever takes the name comes after the one that left
	g.box.mu.Unlock()
	if errors.Is(err, ErrEnded) {
		return nil // and with it the guest
	}
	return err
}
