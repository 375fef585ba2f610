package sandbox

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// WriteFile replaces a file or creates it, with its parent folders. Others see the old
// content or the new, never a part; after an error the old content stands. An existing
// file keeps its permission bits, else perm counts. A symbolic link is followed, a hard
// link is replaced and its other names keep what they had.
func (f *Files) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if err := f.writeFile(name, data, perm); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: cause(err)}
	}
	return nil
}

func (f *Files) writeFile(name string, data []byte, perm fs.FileMode) error {
	if err := f.mayWrite(name); err != nil {
		return err
	}
	at, err := f.locate(name, create)
	if err != nil {
		return err
	}
	defer at.close()
	if err := f.mayChange(at.path()); err != nil {
		return err
	}
	if err := f.mayAdd(at.held, at.base); err != nil {
		return err
	}
	old, err := at.dir.Lstat(at.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return err
	case !old.Mode().IsRegular():
		return &refusal{"it is " + kindOf(old.Mode()) + ", not a file", "write to another name", fs.ErrInvalid}
	default:
		perm = old.Mode().Perm()
	}
	return replace(at, old, data, perm.Perm())
}

// mayWrite refuses what this policy, or every policy, keeps from file tools.
func (f *Files) mayWrite(name string) error {
	if !f.writable {
		return &refusal{"the workspace is read-only here", "report what should be changed instead", fs.ErrPermission}
	}
	what := Closed(name)
	for _, c := range f.closed {
		if what == "" && within(strings.ToLower(path.Clean(name)), strings.ToLower(c)) {
			what = c
		}
	}
	if what != "" {
		return closedFor(what)
	}
	return nil
}

// closedFor refuses to write what other programs obey.
func closedFor(what string) error {
	return &refusal{
		what + " may not be written, nor anything in it: programs outside of the box obey it",
		"say in your answer what should stand there, for the user to put it there", fs.ErrPermission,
	}
}

// mayChange is mayWrite for a name that was followed to its place.
func (f *Files) mayChange(place string) error {
	if err := f.mayWrite(place); err != nil {
		return err
	}
	if !inScopes(f.scopes, place) {
		return &refusal{"only " + strings.Join(f.scopes, ", ") + " may be changed here", "report what should be changed elsewhere instead", fs.ErrPermission}
	}
	return nil
}

// mayAdd refuses to change or add a name in a folder that lies in a git directory, whatever
// that is called, or would become one. held are the folders on the way to it, below the root.
func (f *Files) mayAdd(held []*os.Root, name string) error {
	if f.gitDir != "" {
		return closedFor("the git directory " + f.gitDir)
	}
	for i, dir := range slices.Concat([]*os.Root{f.root}, held) {
		if isGitDir(func(e string) bool {
			if i == len(held) && e == name {
				return true
			}
			_, err := dir.Lstat(e)
			return err == nil
		}) {
			return closedFor("a git directory")
		}
	}
	return nil
}

// replace writes a sibling and puts it in the place of the old file.
func replace(at *place, old fs.FileInfo, data []byte, perm fs.FileMode) (err error) {
	temp := ".skein-" + rand.Text()
	file, err := at.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = at.dir.Remove(temp)
		}
	}()
	if err := fill(file, old, at, data, perm); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := at.dir.Rename(temp, at.base); err != nil {
		return err
	}
	return syncDir(at.dir)
}

func fill(file *os.File, old fs.FileInfo, at *place, data []byte, perm fs.FileMode) error {
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := keepOwner(file, old, at); err != nil {
		return err
	}
	if err := file.Chmod(perm); err != nil {
		return err
	}
	return file.Sync()
}

// keepOwner matters to root only, who would otherwise leave files that their owner, and
// the commands that run as the owner, cannot change.
func keepOwner(file *os.File, old fs.FileInfo, at *place) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if old == nil {
		var err error
		if old, err = at.dir.Stat("."); err != nil {
			return err
		}
	}
	if s, ok := old.Sys().(*syscall.Stat_t); ok {
		return file.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}

// inherit gives a new folder the owner of the one that holds it, see keepOwner.
func inherit(dir *os.Root, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return dir.Lchown(name, int(s.Uid), int(s.Gid))
	}
	return nil
}

// syncDir makes a rename last.
func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
