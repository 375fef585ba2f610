package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"skein/sandbox"
	"skein/tools"
	"skein/worktree"
)

// A layeredBox is the box of a writer whose copy is made of layers. Only the box shows them as
// one tree: so it is open from the start, and files are reached through it. In the place of one
// that has ended (its init was killed) another is opened at the next use.
type layeredBox struct {
	policy sandbox.Policy
	copy   *worktree.Copy // attached while there is a box
	dir    string         // where commands and file tools start, below the view

	// One of it is held while what is below, or the attached copy, is used, and all of it while
	// those change. It is waited for no longer than the caller likes: a box takes long to open on
	// a machine under load, and a large tree to look through.
	lock   *semaphore.Weighted
	box    *sandbox.Box // nil when there is none
	files  *sandbox.Files
	closed bool

	ended atomic.Pointer[sandbox.Box] // the last one that was found to have ended
}

// reopenFor bounds how long a box is opened in the place of one that has ended. It is more than
// a box takes on a machine under load.
const reopenFor = 30 * time.Second

var (
	_ tools.FS   = (*layeredBox)(nil)
	_ tools.Exec = (*layeredBox)(nil)
)

// openLayers opens the box of a site with layers.
func openLayers(ctx context.Context, p sandbox.Policy, s site) (*layeredBox, error) {
	l := &layeredBox{policy: p, copy: s.copy, dir: filepath.ToSlash(s.offset), lock: semaphore.NewWeighted(all)}
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
	var box *sandbox.Box
	err := l.use(ctx, func() error { box = l.box; return nil })
	if err != nil {
		return sandbox.Output{}, err
	}
	out, err := box.Run(ctx, c)
	if errors.Is(err, sandbox.ErrEnded) {
		l.drop(box)
	}
	return out, err
}

var errEnded = fmt.Errorf("the agent has ended: %w", os.ErrClosed)

// use does something while the box stays, and with it what the copy is attached to.
func (l *layeredBox) use(ctx context.Context, do func() error) error {
	if err := l.take(ctx, one); err != nil {
		return err
	}
	for l.goneLocked() {
		l.lock.Release(one)
		if err := l.reopen(ctx); err != nil {
			return err
		}
		if err := l.take(ctx, one); err != nil {
			return err
		}
	}
	defer l.lock.Release(one)
	return do()
}

// What of the lock is taken.
const (
	one = 1
	all = math.MaxInt64
)

func (l *layeredBox) take(ctx context.Context, n int64) error {
	if l.lock.Acquire(ctx, n) != nil {
		return fmt.Errorf("wait for the box: %w", context.Cause(ctx))
	}
	return nil
}

// reopen opens a box if there is none. It is for all who come: that the first of them is
// cancelled meanwhile does not matter.
func (l *layeredBox) reopen(ctx context.Context) error {
	if err := l.take(ctx, all); err != nil {
		return err
	}
	defer l.lock.Release(all)
	switch {
	case l.closed:
		return errEnded
	case !l.goneLocked():
		return nil
	}
	_ = l.closeLocked() // what closing it says is known
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenFor)
	defer cancel()
	return l.openLocked(ctx)
}

// drop gives up a box that has ended. It waits for nobody: who comes next opens another.
func (l *layeredBox) drop(ended *sandbox.Box) { l.ended.Store(ended) }

func (l *layeredBox) goneLocked() bool { return l.box == nil || l.box == l.ended.Load() }

// part opens the files for somebody else who works below the same view.
func (l *layeredBox) part(ctx context.Context, dir string, writable bool) (files *sandbox.Files, err error) {
	err = l.use(ctx, func() error { files, err = l.box.FilesBelow(dir, writable); return err })
	return files, err
}

// Close ends the box. Nothing reaches the files afterwards.
func (l *layeredBox) Close() error {
	_ = l.lock.Acquire(context.Background(), all) // which does not end
	defer l.lock.Release(all)
	l.closed = true
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

// through does something with the files. Tools that reach files have no context: what they do
// ends by itself.
func through[T any](l *layeredBox, do func(*sandbox.Files) (T, error)) (got T, err error) {
	err = l.use(context.Background(), func() error { got, err = do(l.files); return err })
	return got, err
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
