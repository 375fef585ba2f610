package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// includeFile names, in the syntax of .gitignore, the ignored files that come along into
// copies: settings, keys of test servers, caches. What is not ignored is in the snapshot
// anyway.
const includeFile = ".worktreeinclude"

// LeftIncluded is the reason of [Left] for a file that came along into a copy and is not
// ignored there any more.
const LeftIncluded = "came along, by " + includeFile

// includes lists the ignored files of the tree that come along. What is in a nested
// repository does not.
func (t *Tree) includes(ctx context.Context) (_ []string, err error) {
	at := filepath.Join(t.Root, includeFile)
	if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() || info.Size() > largeRules {
		return nil, nil // none, or none that a person wrote
	}
	text, err := readPlain(at)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", includeFile, err)
	}
	d, err := t.desk(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	rules := filepath.Join(d.folder, "include")
	if err := os.WriteFile(rules, text, 0o600); err != nil {
		return nil, err
	}
	wanted, err := d.git.run(ctx, d.at, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+rules)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	ignored, err := d.git.run(ctx, d.at, wanted, "check-ignore", "-z", "--stdin")
	if err != nil && exitOf(err) != 1 { // 1: none is
		return nil, err
	}
	var names []string
	for _, name := range fields(ignored) {
		if safePath(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// include copies files of the tree to the same paths below a folder, by reflink where
// the file system can. Links stay links; what is neither link nor file does not come
// along, nor what is gone by now. What may not be read is returned, in order. It reaches
// nothing outside of tree and folder, whatever links either of them holds.
func (t *Tree) include(ctx context.Context, names []string, folder string) (shut []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	from, err := os.OpenRoot(t.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }()
	const atOnce = 16
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	closed := make([]bool, len(names))
	for i, name := range names {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := bring(from, to, name)
			if closed[i] = errors.Is(err, fs.ErrPermission); closed[i] || missing(err) || errors.Is(err, fs.ErrExist) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("bring %s along: %w", name, err)
			}
			return nil
		})
	}
	err = g.Wait()
	for i, name := range names {
		if closed[i] {
			shut = append(shut, name)
		}
	}
	return shut, err
}

// bring copies one file or link.
func bring(from, to *os.Root, name string) error {
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	link := info.Mode()&fs.ModeSymlink != 0
	if !link && !info.Mode().IsRegular() {
		return nil
	}
	if dir := path.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if link {
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, name)
	}
	// Without waiting, and not through a link: it may have become a FIFO since.
	src, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	if info, err = src.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	dst, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err = reflink(dst, src); err != nil {
		_, err = io.Copy(dst, src)
	}
	err = errors.Join(err, dst.Chmod(info.Mode().Perm()), dst.Close())
	if err == nil {
		err = to.Chtimes(name, info.ModTime(), info.ModTime()) // caches go by it
	}
	return err
}

// bringAlong copies into the copy what comes along from the tree it is made of, and
// notes durably what that is: none of it is ever collected.
func (c *Copy) bringAlong(ctx context.Context, from *Tree) error {
	if from == nil {
		return nil
	}
	ctx, done := from.guard(ctx)
	defer done()
	names, err := from.includes(ctx)
	if err == nil && from.copy != nil {
		var more []string
		if more, err = from.copy.along(); err == nil {
			names = append(names, more...)
		}
	}
	if err != nil || len(names) == 0 {
		return err
	}
	note := filepath.Join(c.folder, copyAlong)
	err = os.WriteFile(note, list(names), 0o600)
	if err == nil {
		err = errors.Join(syncFile(note), syncFile(c.folder))
	}
	if err != nil {
		return err
	}
	shut, err := from.include(ctx, names, c.Root)
	for _, name := range shut {
		c.Without = append(c.Without, Left{name, LeftUnreadable})
	}
	return err
}

// along lists what came along into the copy.
func (c *Copy) along() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(c.folder, copyAlong))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return fields(text), err
}

// cameAlong reports whether a file of a copy is one that came along.
func (s *staging) cameAlong(name string) bool {
	if !s.along[strings.ToLower(name)] {
		return false
	}
	s.left = append(s.left, Left{name, LeftIncluded})
	return true
}
