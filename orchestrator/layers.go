package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"skein/sandbox"
	"skein/tools"
	"skein/worktree"
)

// A layeredBox is the box of a writer whose copy is made of layers. Only the box shows them as
// one tree: so it is open from the start, and files are reached through it. One that has ended
// (its init was killed) is replaced at once.
type layeredBox struct {
	policy sandbox.Policy
	copy   *worktree.Copy
	dir    string // where commands and file tools start, below the view

	mu    sync.RWMutex // held by readers while they use what is below
	box   *sandbox.Box // nil when closed
	files *sandbox.Files
}

var (
	_ tools.FS   = (*layeredBox)(nil)
	_ tools.Exec = (*layeredBox)(nil)
)

// openLayers opens the box of a site with layers.
func openLayers(ctx context.Context, p sandbox.Policy, s site) (*layeredBox, error) {
	l := &layeredBox{policy: p, copy: s.copy, dir: filepath.ToSlash(s.offset)}
	if err := l.openLocked(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *layeredBox) openLocked(ctx context.Context) error {
	box, err := sandbox.Open(ctx, l.policy)
	if err != nil {
		return err
	}
	files, err := box.FilesBelow(l.dir, true)
	if err != nil {
		return errors.Join(err, box.Close())
	}
	l.box, l.files = box, files
	l.copy.Attach(box.Root())
	return nil
}

func (l *layeredBox) closeLocked() error {
	if l.box == nil {
		return nil
	}
	l.copy.Attach("")
	err := errors.Join(l.files.Close(), l.box.Close())
	l.box, l.files = nil, nil
	return err
}

// Run implements [tools.Exec].
func (l *layeredBox) Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error) {
	c.Dir = path.Join(l.dir, c.Dir)
	l.mu.RLock()
	box := l.box
	l.mu.RUnlock()
	if box == nil {
		return sandbox.Output{}, errEnded
	}
	out, err := box.Run(ctx, c)
	if errors.Is(err, sandbox.ErrEnded) {
		err = errors.Join(err, l.replace(ctx, box))
	}
	return out, err
}

var errEnded = fmt.Errorf("the agent has ended: %w", os.ErrClosed)

// replace opens another box in the place of one that has ended.
func (l *layeredBox) replace(ctx context.Context, old *sandbox.Box) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box != old {
		return nil
	}
	_ = l.closeLocked() // it has ended: what closing it says is known
	return l.openLocked(ctx)
}

// part opens the files for somebody else who works below the same view.
func (l *layeredBox) part(dir string, writable bool) (*sandbox.Files, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.box == nil {
		return nil, errEnded
	}
	return l.box.FilesBelow(dir, writable)
}

// Close ends the box. Nothing reaches the files afterwards.
func (l *layeredBox) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closeLocked()
}

// Open implements [tools.FS].
func (l *layeredBox) Open(name string) (fs.File, error) {
	return through(l, func(f *sandbox.Files) (fs.File, error) { return f.Open(name) })
}

// Lstat implements [tools.FS].
func (l *layeredBox) Lstat(name string) (fs.FileInfo, error) {
	return through(l, func(f *sandbox.Files) (fs.FileInfo, error) { return f.Lstat(name) })
}

// ReadLink implements [tools.FS].
func (l *layeredBox) ReadLink(name string) (string, error) {
	return through(l, func(f *sandbox.Files) (string, error) { return f.ReadLink(name) })
}

// WriteFile implements [tools.FS].
func (l *layeredBox) WriteFile(name string, data []byte, perm fs.FileMode) error {
	_, err := through(l, func(f *sandbox.Files) (struct{}, error) { return struct{}{}, f.WriteFile(name, data, perm) })
	return err
}

// through does something with the files, while the box stays.
func through[T any](l *layeredBox, do func(*sandbox.Files) (T, error)) (T, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.files == nil {
		var none T
		return none, errEnded
	}
	return do(l.files)
}

// showsLayers tells by its error why writers' copies are not made of layers here.
func (r *run) showsLayers(ctx context.Context) error {
	switch {
	case r.o.NoSandbox:
		return errors.New("the sandbox is off")
	case r.noBox != nil:
		return r.noBox
	}
	return sandbox.ExamineLayers(ctx)
}
