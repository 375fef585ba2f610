package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// findCache decides where copies live; it makes nothing yet.
func (r *Repo) findCache(name string) error {
	if name != "" {
		var err error
		if r.cache, err = resolve(name); err != nil {
			return fmt.Errorf("find cache folder: %w", err)
		}
		if within(r.tree.Root, r.cache) {
			return fmt.Errorf("cache folder %s lies inside the repository", r.cache)
		}
		return nil
	}
	user, err := os.UserCacheDir()
	if err == nil {
		r.cache, err = resolve(filepath.Join(user, "skein"))
	}
	if err == nil && !within(r.tree.Root, r.cache) && canMake(r.cache) {
		return nil
	}
	// No home, one that is all in this repository, or one where nothing can be made, as those of
	// users that no person is: / or /nonexistent.
	r.shared = true
	r.cache, err = resolve(os.TempDir())
	r.cache = filepath.Join(r.cache, fmt.Sprint("skein-", os.Getuid())) // and that is no link
	if err == nil && within(r.tree.Root, r.cache) {
		err = fmt.Errorf("%s lies inside the repository", r.cache)
	}
	if err == nil {
		err = r.checkCache()
	}
	if err != nil {
		return unavailable{fmt.Errorf("no folder for copies: %w", err)}
	}
	return nil
}

// canMake reports whether a folder can be made, or is there and can be written to.
func canMake(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			return info.IsDir() && unix.Access(dir, unix.W_OK|unix.X_OK) == nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

// checkCache refuses a cache that somebody else made, or could write to. One that is
// not there yet is none of somebody else's.
func (r *Repo) checkCache() error {
	if !r.shared {
		return nil
	}
	info, err := os.Lstat(r.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder that only you can enter", r.cache)
	}
	return nil
}

// makeCache makes the cache with the folders that boxes hide.
func (r *Repo) makeCache() error {
	if err := os.MkdirAll(filepath.Dir(r.cache), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(r.cache, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.checkCache(); err != nil {
		return err
	}
	for _, dir := range r.folders() {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Private lists the folders with what agents of this and of other runs must not see of
// each other: copies, what was left out of their changes, and the files of snapshots; and
// the stores, with the locks of this and of other runs: who can open one can hold them all up.
// Absolute; they exist from the first snapshot on, save a store that [Repo.MakeStore] made
// before. A box hides them, and then shows the copy it is made for, and the objects it borrows.
func (r *Repo) Private() []string { return append(r.folders(), r.stores()...) }

// folders are those of the cache.
func (r *Repo) folders() []string {
	return []string{filepath.Join(r.cache, "copies"), filepath.Join(r.cache, "left"), filepath.Join(r.cache, "bases")}
}

// resolve makes a path absolute and resolves the links in as much of it as exists.
func resolve(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest), nil
		}
		if at == filepath.Dir(at) {
			return name, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// within reports whether a path is the folder or lies in it.
func within(folder, name string) bool {
	return name == folder || strings.HasPrefix(name, strings.TrimSuffix(folder, "/")+"/")
}
