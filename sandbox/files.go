package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrOutside is wrapped by errors for paths that lead out of the workspace.
var ErrOutside = errors.New("outside the workspace")

// Files reaches the files of a workspace by handle, under the policy that its box obeys.
// Names are slash-separated and relative to the workspace; "." is its root. Symbolic links
// are followed as they would be inside the box, so an absolute one counts from the view.
// Its methods may be called at the same time.
type Files struct {
	root     *os.Root
	views    []string // paths at which the workspace is known, for absolute links
	hidden   []string // relative, slash-separated
	closed   []string // relative: what is never written, besides what [Closed] names
	gitDir   string   // in which all of it lies, "" for none
	writable bool
	scopes   []string // relative: what alone is writable then
}

var (
	_ fs.ReadLinkFS  = (*Files)(nil)
	_ fs.ReadDirFile = (*file)(nil)
	_ io.ReadSeeker  = (*file)(nil)
	_ io.ReaderAt    = (*file)(nil)
)

// OpenFiles opens the files of a workspace of one layer, see [Box.Files] for those of more.
// The caller must close them.
func OpenFiles(p Policy) (*Files, error) {
	p, err := p.checked()
	if err != nil {
		return nil, err
	}
	if p.Layers != nil {
		return nil, &policyError{errors.New("only a box shows layers as one"), "this is a fault of the program that opens the files"}
	}
	return p.files(p.Workspace)
}

// files opens the workspace that is found at path. The policy is a checked one.
func (p Policy) files(path string) (*Files, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	f := &Files{root: root, views: []string{p.View}, closed: p.closedPaths(), writable: p.Writable, scopes: p.Scopes}
	if p.Layers == nil {
		f.gitDir = gitDirAround(p.Workspace)
	}
	if resolved, err := filepath.EvalSymlinks(p.View); err == nil && resolved != p.View {
		f.views = append(f.views, resolved)
	}
	for _, h := range slices.Concat(p.Hidden, secrets(p.Env)) {
		if rel, ok := p.below(h); ok {
			f.hidden = append(f.hidden, filepath.ToSlash(rel))
		}
	}
	return f, nil
}

// below is what lies in a folder of these, under the same policy.
func (f *Files) below(dir string) (*Files, error) {
	root, err := f.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	part := &Files{root: root, gitDir: f.gitDir, writable: f.writable, hidden: inFolder(f.hidden, dir), closed: inFolder(f.closed, dir), scopes: inFolder(f.scopes, dir)}
	for _, view := range f.views {
		part.views = append(part.views, filepath.Join(view, dir))
	}
	return part, nil
}

// inFolder names relative paths from a folder: those in it, and "." for what holds it.
func inFolder(paths []string, dir string) []string {
	var named []string
	for _, p := range paths {
		if rel, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(rel) {
			named = append(named, rel)
		} else if p == "." || within(dir, p) {
			named = append(named, ".")
		}
	}
	return named
}

// Close gives the handle back.
func (f *Files) Close() error { return f.root.Close() }

// Open opens a regular file or a folder for reading. Anything else is refused, and never
// waited for.
func (f *Files) Open(name string) (fs.File, error) {
	at, err := f.locate(name, follow)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer at.close()
	opened, err := at.open()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	return &file{opened, f, at.path()}, nil
}

// Lstat describes a file, or a symbolic link itself.
func (f *Files) Lstat(name string) (fs.FileInfo, error) {
	at, err := f.locate(name, noFollow)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	defer at.close()
	info, err := at.dir.Lstat(at.base)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: cause(err)}
	}
	return info, nil
}

// ReadLink returns the target of a symbolic link as it is written.
func (f *Files) ReadLink(name string) (string, error) {
	at, err := f.locate(name, noFollow)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	defer at.close()
	target, err := at.dir.Readlink(at.base)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: cause(err)}
	}
	return target, nil
}

// isHidden reports whether a resolved path is hidden or below what is.
func (f *Files) isHidden(name string) bool {
	return slices.ContainsFunc(f.hidden, func(h string) bool { return within(name, h) })
}

// open opens what was located, if it still is what it may be.
func (p *place) open() (*os.File, error) {
	info, err := p.dir.Lstat(p.base)
	if err != nil {
		return nil, err
	}
	if err := readable(info); err != nil {
		return nil, err
	}
	// It may have been swapped since: a FIFO would wait for a writer without the flag.
	file, err := p.dir.OpenFile(p.base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	now, err := file.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = errSwapped
	}
	if err == nil {
		err = readable(now)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func readable(info fs.FileInfo) error {
	if m := info.Mode(); !m.IsRegular() && !m.IsDir() {
		return &refusal{"it is " + kindOf(m) + ", not a file", "only regular files and folders can be read", fs.ErrInvalid}
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	}
	return "a special file"
}

// cause is what a handle's error is about; the caller names the path itself.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return err
}

// A file is open for reading, and can do nothing else.
type file struct {
	os    *os.File
	files *Files
	path  string
}

func (f *file) Stat() (fs.FileInfo, error)                   { return f.os.Stat() }
func (f *file) Read(p []byte) (int, error)                   { return f.os.Read(p) }
func (f *file) ReadAt(p []byte, at int64) (int, error)       { return f.os.ReadAt(p, at) }
func (f *file) Seek(offset int64, whence int) (int64, error) { return f.os.Seek(offset, whence) }
func (f *file) Close() error                                 { return f.os.Close() }

// ReadDir implements [fs.ReadDirFile]; it leaves out what is hidden.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	for {
		entries, err := f.os.ReadDir(n)
		kept := slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return f.files.isHidden(path.Join(f.path, e.Name())) })
		if n <= 0 || len(kept) > 0 || err != nil {
			return kept, err
		}
	}
}

// A refusal is an error about a path that whoever named it can act on.
type refusal struct {
	text, hint string
	kind       error
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.kind }

// Hint says what to do instead.
func (e *refusal) Hint() string { return e.hint }

var errSwapped = &refusal{"it changed while it was opened", "try again", fs.ErrInvalid}
