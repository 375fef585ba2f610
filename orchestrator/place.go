package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"

	"skein/sandbox"
	"skein/tools"
	"skein/worktree"
)

// A site is where files are and how they are seen: what a place is made of.
type site struct {
	root   string          // host folder with the files
	view   string          // path at which root is shown
	offset string          // the workspace below root and view, "." for the whole
	gitDir string          // private git directory, "" for none
	mounts []sandbox.Mount // object stores it needs
	layers *sandbox.Layers // over root; nil where root holds all files
	shown  *layeredBox     // whose box shows them
	tree   *worktree.Tree  // nil without git
	copy   *worktree.Copy  // nil in the user's own tree
}

// onTree does something with the tree while it stays where it is: one that a box shows moves with
// that.
func (s site) onTree(ctx context.Context, do func(*worktree.Tree) error) error {
	if s.shown == nil {
		return do(s.tree)
	}
	return s.shown.use(ctx, func() error { return do(s.tree) })
}

// path is that of the workspace as agents see it.
func (s site) path() string { return filepath.Join(s.view, s.offset) }

// policy is what commands of an agent at this site may reach. State of sessions, copies of
// others and our locks are hidden.
func (r *run) policy(s site, writable bool) sandbox.Policy {
	p := sandbox.Policy{
		Workspace: s.root, Layers: s.layers, View: s.view, Writable: writable, ReadOnly: s.mounts,
		Hidden: []string{path.Join(filepath.ToSlash(s.offset), ".skein"), ".skein"},
		Env:    sandbox.Environment(r.o.Environ), Init: r.o.Init, Net: r.o.AllowNet, Readable: r.o.Readable, Git: r.user,
	}
	if s.copy != nil {
		p.Limits.Share = r.o.Jobs // so many writers may be at work; the user's own tree has a box or two
	}
	if r.repo != nil {
		p.Hidden = append(p.Hidden, filepath.Join(r.repo.Tree().Root, ".skein"))
		p.Hidden = append(p.Hidden, r.repo.Private()...)
	}
	if writable {
		p.Scopes = []string{s.offset}
	}
	if writable || s.layers != nil { // else it is seen with the other files
		p.GitDir = s.gitDir
	}
	return p
}

// makeStore makes what boxes hide of the repository in a run that may make it later: it would be
// seen in those that are open then. Where it cannot be made now, it is said when it is needed.
func (r *run) makeStore() {
	if r.repo != nil && r.delegates() {
		_ = r.repo.MakeStore()
	}
}

// A place is one agent's workspace and what has to be ended with it.
type place struct {
	site
	branch string // git branch it is of, "" when there is none
	ws     tools.Workspace
	files  io.Closer // nil when they are reached through exec
	exec   io.Closer // nil when there are no commands
	// readers are those who read this workspace, and nothing else: the agent of this place, if
	// it is such a one, among them.
	readers *audience
}

// open makes a place of a site, for the agent of that name. Commands need a box; where none can
// be had, ws.NoExec says why. readers are those who already read this site, or nil.
func (r *run) open(ctx context.Context, s site, name string, writable bool, readers *audience) (*place, error) {
	p := &place{site: s, readers: readers}
	if writable || readers == nil {
		p.readers = r.audience(s)
	}
	p.ws.Path = s.path()
	if writable && s.layers != nil {
		box, err := openLayers(ctx, r.policy(s, true), s)
		if err != nil {
			return nil, err
		}
		p.shown, p.ws.FS = box, box
		p.runCommands(r.processes, box)
		return p, nil
	}
	if err := p.openFiles(ctx, writable); err != nil {
		return nil, err
	}
	switch {
	case r.o.NoSandbox && writable:
		bare := &sandbox.Bare{Dir: filepath.Join(s.root, s.offset), Env: sandbox.Environment(r.o.Environ)}
		p.runCommands(r.processes, bare)
	case r.o.NoSandbox:
		p.ws.NoExec = "a reader's commands need a box, and the sandbox is off: use read_file, glob and grep"
	case r.noBox != nil && writable: // why there is none is for people, who are told
		p.ws.NoExec = "no box on this system: commands need the user to allow --sandbox off; use the file tools"
	case r.noBox != nil:
		p.ws.NoExec = "no box on this system, so a reader runs no commands: use read_file, glob and grep"
	case !writable:
		box, leave, err := p.readers.box.join()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.runCommands(r.processes, &guest{box: box, leave: leave, name: name, dir: filepath.ToSlash(s.offset)})
	default:
		box := &lazyBox{policy: r.policy(s, true), before: r.makeStore, dir: filepath.ToSlash(s.offset)}
		p.runCommands(r.processes, box)
	}
	return p, nil
}

// openFiles opens the files of the place. A box that shows layers has them; who only reads
// shares a handle with the others.
func (p *place) openFiles(ctx context.Context, writable bool) error {
	var files interface {
		tools.FS
		io.Closer
	}
	var err error
	switch {
	case p.shown != nil:
		files, err = p.shown.part(ctx, p.offset, writable)
	case writable:
		files, err = sandbox.OpenFiles(p.filePolicy(true))
	default:
		var v view
		v.Files, v.leave, err = p.readers.files.join()
		files = v
	}
	if err == nil {
		p.files, p.ws.FS = files, files
	}
	return err
}

// filePolicy is what file tools may reach at this site.
func (s site) filePolicy(writable bool) sandbox.Policy {
	return sandbox.Policy{Workspace: filepath.Join(s.root, s.offset), View: s.path(), Writable: writable, Hidden: []string{".skein"}}
}

// planted lists what commands made in the place that programs on the host obey: git
// directories, settings of agents and editors. It is asked after Close.
func (p *place) planted() []string {
	if box, ok := p.exec.(*lazyBox); ok {
		return box.planted
	}
	return nil
}

// Close ends every process of the place and gives its handles back.
func (p *place) Close() error {
	var err error
	if p.exec != nil {
		err = p.exec.Close()
	}
	if p.files != nil {
		err = errors.Join(p.files.Close(), err)
	}
	return err
}

// A lazyBox opens its box at the first command: an agent that only uses file tools has none.
// A box that has ended (its init was killed) is replaced at the next one.
type lazyBox struct {
	policy sandbox.Policy
	before func()
	dir    string // where commands start, below the view

	mu      sync.Mutex
	box     *sandbox.Box
	closed  bool
	planted []string // see [place.planted]
}

// Run implements [tools.Exec].
func (l *lazyBox) Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error) {
	c.Dir = path.Join(l.dir, c.Dir)
	box, err := l.open(ctx)
	if err != nil {
		return sandbox.Output{}, err
	}
	out, err := box.Run(ctx, c)
	if errors.Is(err, os.ErrClosed) {
		l.forget(box)
	}
	return out, err
}

func (l *lazyBox) open(ctx context.Context) (*sandbox.Box, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("open box: the agent has ended: %w", os.ErrClosed)
	}
	if l.box == nil {
		l.before()
		box, err := sandbox.Open(ctx, l.policy)
		if err != nil {
			return nil, err
		}
		l.box = box
	}
	return l.box, nil
}

// forget closes a box that has ended, unless it was replaced already.
func (l *lazyBox) forget(box *sandbox.Box) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box == box {
		l.box = nil
		_ = box.Close() // it has ended: what closing it says is known
		l.planted = append(l.planted, box.Planted()...)
	}
}

// Close ends the box if there is one. No command runs afterwards.
func (l *lazyBox) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.box == nil {
		return nil
	}
	err := l.box.Close()
	l.planted = append(l.planted, l.box.Planted()...)
	return err
}
