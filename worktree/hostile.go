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
	"slices"
	"strings"
	"syscall"
	"time"
)

// Git opens some files of a tree by their names and reads them whole: from a FIFO or a
// device it never comes back, and a sparse file of a terabyte fills the memory. In a
// copy such files are taken out of the way before git is called. The user's tree is
// theirs: there git's time is what is watched.

// Sizes beyond which git is not let read a file.
const (
	largeRules      = 1 << 20  // .gitignore and the like
	largeRepository = 16 << 20 // files of a nested repository's git directory
	largeUsers      = 64 << 20 // in the user's own tree
)

// patience is how long git may read the user's tree before we look whether it can end.
const patience = 2 * time.Second

// A SpecialFileError refuses a tree with a file that git would wait for.
type SpecialFileError struct{ Path string }

func (e *SpecialFileError) Error() string {
	return e.Path + " is no plain file, or a huge one: git cannot read it"
}

// Hint says what to do next.
func (e *SpecialFileError) Hint() string { return "remove " + e.Path }

// trap reports whether git would open the file and find it special or larger than the
// limit. Only .git of a nested repository and .gitmodules are followed through links.
func trap(at, name string, rules, repository int64) bool {
	base := strings.ToLower(path.Base(name))
	limit, follow := rules, false
	switch {
	case base == ".git" || strings.Contains("/"+path.Dir(name)+"/", "/.git/"):
		limit, follow = repository, true
	case base == ".gitmodules":
		follow = true
	case base != ".gitignore" && base != ".gitattributes":
		return false
	}
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(at)
	switch {
	case err != nil, info.IsDir(), info.Mode()&fs.ModeSymlink != 0:
		return false
	case !info.Mode().IsRegular():
		return !isWhiteout(info)
	}
	inObjects := strings.Contains("/"+name, "/.git/objects/") // found by their ids only
	return info.Size() > limit && !inObjects && base != "index"
}

// traps calls found for every trap below root, save in its own git directory.
func traps(ctx context.Context, root string, rules, repository int64, found func(name string) error) error {
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil, d.IsDir() && at != root+"/.git":
			return nil // what we cannot read git cannot read either
		case at == root+"/.git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name := strings.TrimPrefix(at, root+"/")
		if trap(at, name, rules, repository) {
			return found(name)
		}
		return nil
	})
}

// guard watches over git calls on the user's tree. Its context ends with a
// [SpecialFileError] when they take long and such a file is found. The caller calls the
// function when it has done.
func (t *Tree) guard(ctx context.Context) (context.Context, func()) {
	if t.copy != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	go func() { // the function we return waits for it
		defer close(looked)
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience):
		}
		_ = traps(ctx, t.Root, largeUsers, largeUsers, func(name string) error {
			cancel(&SpecialFileError{name})
			return fs.SkipAll
		})
	}()
	return ctx, func() { cancel(nil); <-looked }
}

// clear sets the traps in a copy aside. One that the snapshot has a plain file for is
// replaced by that when the copy is staged.
func (c *Copy) clear(ctx context.Context) error {
	if !c.attached {
		if err := c.unlock(ctx); err != nil {
			return err
		}
	}
	return traps(ctx, c.tree.at.work, largeRules, largeRepository, func(name string) error {
		if c.snapshotHasLarge(ctx, name) {
			return nil
		}
		if c.attached { // nobody may move what the kernel shows in a box
			return &SpecialFileError{name}
		}
		if err := c.setAside(name); err != nil {
			return fmt.Errorf("set %s aside: %w", name, err)
		}
		return nil
	})
}

// snapshotHasLarge reports whether a file is large because it was so in the snapshot.
func (c *Copy) snapshotHasLarge(ctx context.Context, name string) bool {
	info, err := os.Lstat(c.tree.stored(name))
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	var size int64
	text, err := c.repo.git.line(ctx, c.repo.ours(), "cat-file", "-s", c.Base.Commit+":"+name)
	if err == nil {
		_, err = fmt.Sscan(text, &size)
	}
	return err == nil && info.Size() <= 2*size // line ends may make it larger than its object
}

// setAside moves a file out of the tree; see [Copy.aside].
func (c *Copy) setAside(name string) error {
	folder := filepath.Join(c.folder, copyAside)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// A folder for each: a later one may have a name that is a folder of an earlier one.
	folder, err := os.MkdirTemp(folder, "")
	if err != nil {
		return err
	}
	return move(c.tree.stored(name), filepath.Join(folder, name))
}

// aside lists what was set aside, by its path in the tree, and says where it is.
func (c *Copy) aside() (map[string]string, error) {
	found := map[string]string{}
	folders, err := os.ReadDir(filepath.Join(c.folder, copyAside))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, d := range folders {
		top := filepath.Join(c.folder, copyAside, d.Name())
		err = errors.Join(err, filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found[strings.TrimPrefix(at, top+"/")] = at
			}
			return err
		}))
	}
	return found, err
}

// overlook names the files that were set aside and has git take them for unchanged, and
// read rules among them from the index. Those of an overlay copy are below its upper and
// count as such anyway. Known are the paths in the index.
func (s *staging) overlook(ctx context.Context, known map[string]bool) error {
	if s.tree.copy == nil {
		return nil
	}
	aside, err := s.tree.copy.aside()
	if err != nil {
		return err
	}
	var missing []string
	for name := range aside {
		s.left = append(s.left, Left{name, LeftUnsafe})
		if _, err := os.Lstat(s.tree.stored(name)); s.upper == nil && known[name] && errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	s.sparse = append(s.sparse, missing...)
	return s.update(ctx, missing, "--skip-worktree")
}

// move renames a file or folder within one file system, making the folders above its
// new name, and takes permissions where a writer took them away.
func move(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, at := range []string{filepath.Dir(from), from} {
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			_ = os.Chmod(at, info.Mode().Perm()|0o700)
		}
	}
	return os.Rename(from, to)
}

// readPlain reads a small file of the user's git directory. Whoever wrote that may
// have put anything there: what is no plain file is an error.
func readPlain(name string) ([]byte, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, largeRepository+1))
	if err == nil && len(text) > largeRepository {
		err = fmt.Errorf("read %s: too large", name)
	}
	return text, err
}

// openPlain opens a file for reading, never waiting for one that is not plain.
func openPlain(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("open %s: not a plain file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
