package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// carryOut makes the changes. After an error, or a panic, the tree is as it was, unless
// the error wraps [ErrHalfApplied].
func (l *ledger) carryOut(ctx context.Context) (err error) {
	ended := false
	defer func() {
		if ended {
			return
		}
		cause := "panic"
		if err != nil {
			cause = err.Error()
		}
		if _, back := l.rollBack(); back != nil {
			err = fmt.Errorf("%w: %s; roll back: %w", ErrHalfApplied, cause, back)
		}
	}()
	if err = l.replaceAll(ctx); err == nil {
		err = l.finish()
	}
	ended = err == nil
	return err
}

func (l *ledger) replaceAll(ctx context.Context) error {
	for i, e := range l.Entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := l.fault("before replace " + string(e.Path)); err != nil {
			return err
		}
		if err := l.replace(i, e); err != nil {
			return err
		}
		if err := l.fault("after replace " + string(e.Path)); err != nil {
			return err
		}
	}
	return nil
}

// replace carries out one entry, if the file is still the old one.
func (l *ledger) replace(i int, e *entry) error {
	name := string(e.Path)
	if e.New.Type != "" {
		if err := l.makeFolders(name); err != nil {
			return err
		}
	}
	if !plainFolders(string(l.Root), path.Dir(name)) {
		return one(name, KindMeanwhile)
	}
	if err := e.still(l.file(e), e.Old); err != nil {
		return err
	}
	if err := l.fault("looked at " + name); err != nil {
		return err
	}
	switch {
	case e.New.Type == "":
		return l.takeAway(i, e)
	case e.Old.Type == "":
		if l.empties(e) {
			removeEmpty(l.file(e))
		}
		err := put(l.fresh(e), l.file(e), l.sibling(i), true)
		if errors.Is(err, fs.ErrExist) {
			return one(name, KindInTheWay)
		}
		return err
	default:
		return l.exchange(i, e)
	}
}

// empties reports whether the ledger deletes files of a folder that stands at the entry's
// path: what was made there since is somebody's.
func (l *ledger) empties(e *entry) bool {
	// Nearly always none does, and looking through all entries for each would take minutes.
	if info, err := os.Lstat(l.file(e)); err != nil || !info.IsDir() {
		return false
	}
	return slices.ContainsFunc(l.Entries, func(other *entry) bool {
		return other.New.Type == "" && strings.HasPrefix(string(other.Path), string(e.Path)+"/")
	})
}

// exchange puts the new file in the place of the old one. Whoever wrote there since it
// was looked at loses nothing: what comes out is looked at again, and put back if it is
// not what was to be replaced.
func (l *ledger) exchange(i int, e *entry) error {
	file, from := l.file(e), l.fresh(e)
	err := swap(from, file)
	if errors.Is(err, syscall.EXDEV) {
		if err := clone(from, l.sibling(i)); err != nil {
			return err
		}
		from = l.sibling(i)
		err = swap(from, file)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return put(from, file, l.sibling(i), false)
	case errors.Is(err, fs.ErrNotExist):
		return one(string(e.Path), KindMeanwhile)
	case err != nil:
		return err
	}
	if err := l.fault("exchanged " + string(e.Path)); err != nil {
		return err
	}
	if err := e.still(from, e.Old); err != nil {
		return errors.Join(one(string(e.Path), KindMeanwhile), swap(from, file))
	}
	if from == l.sibling(i) {
		return os.Remove(from)
	}
	return nil
}

// takeAway deletes the old file, with the same care.
func (l *ledger) takeAway(i int, e *entry) error {
	file, to := l.file(e), l.sibling(i)
	switch err := renameNew(file, to); {
	case errors.Is(err, errors.ErrUnsupported):
		return os.Remove(file)
	case errors.Is(err, fs.ErrNotExist):
		return one(string(e.Path), KindMeanwhile)
	case err != nil:
		return err
	}
	if err := l.fault("exchanged " + string(e.Path)); err != nil {
		return err
	}
	if err := e.still(to, e.Old); err != nil {
		return errors.Join(one(string(e.Path), KindMeanwhile), renameNew(to, file))
	}
	return os.Remove(to)
}

// stray is a file of somebody else's that an exchange took out, and that was not put
// back before the process was killed; "" where there is none. It can only be when the
// new file stands in the tree; else what lies at these names is not complete.
func (l *ledger) stray(i int, e *entry) string {
	if e.still(l.file(e), e.New) != nil {
		return ""
	}
	for _, at := range []string{l.fresh(e), l.sibling(i)} {
		got, err := look(at)
		there := got.Type != "" || errors.Is(err, errFolder)
		if there && e.still(at, e.Old) != nil && e.still(at, e.New) != nil {
			return at
		}
	}
	return ""
}

// makeFolders makes the planned folders above a path.
func (l *ledger) makeFolders(name string) error {
	for i, r := range name {
		if r != '/' {
			continue
		}
		folder := bytePath(name[:i])
		if _, ours := slices.BinarySearch(l.Folders, folder); !ours {
			continue
		}
		at := l.at(folder)
		if err := os.Mkdir(at, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := ownLike(filepath.Dir(at), at); err != nil {
			return err
		}
	}
	return nil
}
