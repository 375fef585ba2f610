package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"skein/sandbox/boxinit"
)

// tidyFor bounds how long what a guest left in its TMPDIR is being removed. The rest ends
// with the box.
const tidyFor = 5 * time.Second

// A Guest is one of several users of a box, such as the readers of one state of a workspace.
// It has a TMPDIR of its own, and its processes end with it. All else is shared with the
// other guests, who run as the same user: they see each other's processes, and what lies in
// /tmp, in HOME and in the build caches. Its methods may be called at the same time.
type Guest struct {
	box  *Box
	name string
	tmp  string // a folder of the box
	crew crew

	closing sync.Once
	mu      sync.Mutex
	used    bool
}

// Guest makes room for a guest. The name is a file name, and nobody else's at the time. The
// guest must be closed, and ends with the box at the latest.
func (b *Box) Guest(name string) (*Guest, error) {
	if name == "" || name == "." || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("guest %q: not a file name", name)
	}
	g := &Guest{box: b, name: name, tmp: "/tmp/guest-" + name}
	for _, m := range b.plan.spec.Mounts {
		if within(string(m.Target), g.tmp) { // it is going to be removed
			return nil, fmt.Errorf("guest %s: its folder %s holds what the box shows", name, g.tmp)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, fmt.Errorf("guest %s: %w", name, &endedError{})
	case b.guests[name] != nil:
		return nil, fmt.Errorf("guest %s: there is one of that name", name)
	}
	b.guests[name] = g
	return g, nil
}

// Run is [Box.Run] with the guest's TMPDIR.
func (g *Guest) Run(ctx context.Context, c Command) (Output, error) {
	p, err := g.launch(ctx, c, false)
	if err != nil {
		return Output{}, err
	}
	return p.wait(ctx)
}

// Start is [Box.Start] with the guest's TMPDIR. The process ends with the guest.
func (g *Guest) Start(ctx context.Context, c Command) (*Process, error) {
	p, err := g.launch(ctx, c, true)
	if err != nil {
		return nil, err
	}
	return p.begun(ctx)
}

func (g *Guest) launch(ctx context.Context, c Command, tell bool) (*Process, error) {
	g.mu.Lock()
	g.used = true
	g.mu.Unlock()
	return g.box.launch(ctx, &g.crew, c, boxinit.Request{Tell: tell, Tmp: boxinit.Raw(g.tmp), Env: []boxinit.Raw{"TMPDIR=" + boxinit.Raw(g.tmp)}})
}

// Close ends the guest's processes, waits for them and removes its TMPDIR. It may be called
// more than once.
func (g *Guest) Close() error {
	g.crew.close()
	var err error
	g.closing.Do(func() { err = g.tidy() })
	return err
}

func (g *Guest) tidy() error {
	defer func() {
		g.box.mu.Lock()
		defer g.box.mu.Unlock()
		delete(g.box.guests, g.name)
	}()
	g.mu.Lock()
	used := g.used
	g.mu.Unlock()
	if !used {
		return nil
	}
	_, err := g.box.self(context.Background(), Command{Argv: []string{boxinit.ArgTidy, g.tmp}, Timeout: tidyFor})
	if errors.Is(err, ErrEnded) {
		return nil // and with it the folder
	}
	return err
}
