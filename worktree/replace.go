package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// A state is what stands at a path. The zero state is: nothing.
type state struct {
	Type string      `json:",omitempty"` // "", file, link, other
	Perm fs.FileMode `json:",omitempty"` // of files
	Sum  string      `json:",omitempty"` // SHA-256 of a file's content or a link's target, in hex
}

// errFolder means that a folder stands at a path.
var errFolder = errors.New("is a folder")

// look tells what stands at path, links not followed.
func look(path string) (state, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return state{}, nil
	case err != nil:
		return state{}, err
	case info.IsDir():
		return state{}, fmt.Errorf("%s: %w", path, errFolder)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		sum := sha256.Sum256([]byte(target))
		return state{Type: "link", Sum: hex.EncodeToString(sum[:])}, err
	case !info.Mode().IsRegular():
		return state{Type: "other"}, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return state{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return state{}, err
	}
	return state{Type: "file", Perm: info.Mode().Perm(), Sum: hex.EncodeToString(h.Sum(nil))}, nil
}

// still reports by its error that something else stands at path. Of the permissions
// only what git tracks counts.
func (e *entry) still(path string, want state) error {
	got, err := look(path)
	if errors.Is(err, errFolder) && want.Type == "" {
		return nil // whether it may be removed shows when that is tried
	}
	if err != nil {
		return err
	}
	if got.Type != want.Type || got.Sum != want.Sum || got.Perm&0o100 != want.Perm&0o100 {
		return one(string(e.Path), KindMeanwhile)
	}
	return nil
}

// adopt gives a new file the permissions and the owner of the one it replaces, save
// the executable bits.
func (e *entry) adopt(old, fresh string) error {
	info, err := os.Lstat(fresh)
	if err != nil {
		return err
	}
	if err := ownLike(old, fresh); err != nil {
		return err
	}
	if e.Old.Type != "file" || !info.Mode().IsRegular() {
		return nil
	}
	perm := e.Old.Perm &^ 0o111
	if info.Mode().Perm()&0o100 != 0 {
		perm |= perm & 0o444 >> 2
	}
	return os.Chmod(fresh, perm)
}

// ownLike gives file the owner of like, or of the nearest folder above it that exists.
// Only root works on other people's files and can do so.
func ownLike(like, file string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for {
		info, err := os.Lstat(like)
		if err == nil {
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				return nil
			}
			return os.Lchown(file, int(st.Uid), int(st.Gid))
		}
		if like == filepath.Dir(like) {
			return err
		}
		like = filepath.Dir(like)
	}
}

// keep makes to the same file as from: a hard link, or where that cannot be a copy.
func keep(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	// Not a symbolic link: some systems would link its target.
	if info.Mode().IsRegular() && os.Link(from, to) == nil {
		return nil
	}
	return clone(from, to)
}

// put puts the file from at to in one step: over what is there or, when fresh, only
// if nothing is. Sibling is a free name in the folder of to, for the way across file
// systems.
func put(from, to, sibling string, fresh bool) error {
	step := os.Rename
	if fresh {
		step = linkOrRename
	}
	err := step(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	defer func() { _ = os.Remove(sibling) }()
	if err := clone(from, sibling); err != nil {
		return err
	}
	return step(sibling, to)
}

// linkOrRename never replaces anything, unless the system is not Linux and the file
// system has no hard links.
func linkOrRename(from, to string) error {
	if err := renameNew(from, to); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if info, err := os.Lstat(from); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return clone(from, to) // in one step for a link
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EXDEV) {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// clone copies a file or link with its permissions, time and owner, durably.
func clone(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(target, to); err != nil {
			return err
		}
		return ownLike(from, to)
	}
	src, err := openPlain(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	err = errors.Join(err, dst.Chmod(info.Mode().Perm()), dst.Sync(), dst.Close())
	if err == nil {
		err = errors.Join(ownLike(from, to), os.Chtimes(to, info.ModTime(), info.ModTime()))
	}
	return err
}

// plainFolders reports whether none of the folders that lead to a path is a link; a
// missing one is none.
func plainFolders(root, folder string) bool {
	if folder == "." {
		return true
	}
	at := root
	for part := range strings.SplitSeq(folder, "/") {
		at += "/" + part
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return false
		}
	}
	return true
}

// removeEmpty removes a folder that holds nothing but empty folders, else nothing.
func removeEmpty(folder string) {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() {
		return
	}
	var dirs []string
	_ = filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, at)
		}
		return err
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = syscall.Rmdir(dirs[i]) // fails where something is left
	}
}

// syncTree makes every file and folder below root durable. Several at once, since a
// file system writes them in one go then.
func syncTree(root string) error {
	const atOnce = 16
	var g errgroup.Group
	g.SetLimit(atOnce)
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			g.Go(func() error { return syncFile(at) })
		}
		return err
	})
	return errors.Join(err, g.Wait())
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
