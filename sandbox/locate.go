package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one name may lead through, as in the kernel.
const maxLinks = 40

// How [Files.locate] treats the last element of a name.
type lookupMode int

const (
	noFollow lookupMode = iota // a symbolic link is what is meant
	follow                     // its target is meant
	create                     // as follow; missing folders are made
)

// A place is a name that was followed to the folder that holds it. Nothing on the way is
// a symbolic link, and nobody can put one there any more: folders are held by handle.
type place struct {
	dir  *os.Root
	base string
	done []string // elements from the root to dir
	held []*os.Root
}

func (p *place) path() string { return joined(p.done, p.base) }

func (p *place) close() {
	for _, r := range p.held {
		_ = r.Close()
	}
}

// A walk follows a name step by step.
type walk struct {
	files *Files
	done  []string   // elements already entered
	held  []*os.Root // their handles
	rest  []string   // elements still to go
	links int
}

// locate follows name to the folder that holds its last element.
//
// os.Root alone would follow a link that is put in the way in the meantime, as long as it
// stays inside: .git is inside. So each folder is entered by itself, and left out if it
// is not the one that was looked at.
func (f *Files) locate(name string, mode lookupMode) (*place, error) {
	if strings.ContainsRune(name, 0) || name == "" {
		return nil, fs.ErrInvalid
	}
	if path.IsAbs(name) {
		return nil, outside(name)
	}
	w := &walk{files: f, rest: strings.Split(name, "/")}
	base, err := w.run(mode)
	if err == nil && f.isHidden(joined(w.done, base)) {
		err = fs.ErrNotExist
	}
	p := &place{dir: w.dir(), base: base, done: w.done, held: w.held}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (w *walk) dir() *os.Root {
	if len(w.held) == 0 {
		return w.files.root
	}
	return w.held[len(w.held)-1]
}

// run enters folders until one element is left, and returns that.
func (w *walk) run(mode lookupMode) (base string, err error) {
	for len(w.rest) > 0 {
		step := w.rest[0]
		w.rest = w.rest[1:]
		last := !slices.ContainsFunc(w.rest, func(e string) bool { return e != "" && e != "." })
		switch step {
		case "", ".":
			continue
		case "..":
			if err := w.leave(); err != nil {
				return "", err
			}
			continue
		}
		info, err := w.dir().Lstat(step)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0 && (!last || mode != noFollow):
			err = w.link(step)
		case last:
			return step, nil
		case err == nil && !info.IsDir():
			err = &refusal{step + " is " + kindOf(info.Mode()) + ", not a folder", "list the folder that holds it", fs.ErrInvalid}
		case err == nil:
			err = w.enter(step, info)
		case mode == create && errors.Is(err, fs.ErrNotExist):
			err = w.make(step)
		}
		if err != nil {
			return "", cause(err)
		}
	}
	return ".", nil
}

func (w *walk) enter(name string, want fs.FileInfo) error {
	if w.files.isHidden(joined(w.done, name)) {
		return fs.ErrNotExist
	}
	next, err := w.dir().OpenRoot(name)
	if err != nil {
		return err
	}
	if info, err := next.Stat("."); err != nil || !os.SameFile(info, want) {
		_ = next.Close()
		return errSwapped
	}
	w.done, w.held = append(w.done, name), append(w.held, next)
	return nil
}

func (w *walk) leave() error {
	if len(w.done) == 0 {
		return outside("..")
	}
	n := len(w.done) - 1
	_ = w.held[n].Close()
	w.done, w.held = w.done[:n], w.held[:n]
	return nil
}

// link goes on where a symbolic link leads, seen from inside the box.
func (w *walk) link(name string) error {
	if w.links++; w.links > maxLinks {
		return &refusal{"too many symbolic links", "name the file itself", fs.ErrInvalid}
	}
	target, err := w.dir().Readlink(name)
	if err != nil {
		return err
	}
	if !path.IsAbs(target) {
		w.rest = append(strings.Split(target, "/"), w.rest...)
		return nil
	}
	for _, view := range w.files.views {
		// Not cleaned: what ".." means depends on the links before it.
		if below, ok := strings.CutPrefix(target, view); ok && (below == "" || below[0] == '/') {
			for len(w.done) > 0 {
				_ = w.leave() // cannot fail
			}
			w.rest = append(strings.Split(below, "/"), w.rest...)
			return nil
		}
	}
	return outside(name + " -> " + target)
}

// make makes a folder on the way to a file that is going to be written.
func (w *walk) make(name string) error {
	if err := w.files.mayChange(joined(w.done, name)); err != nil {
		return err
	}
	if err := w.files.mayAdd(w.held, name); err != nil {
		return err
	}
	if err := w.dir().Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := w.dir().Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errSwapped
	}
	if err := inherit(w.dir(), name); err != nil {
		return err
	}
	return w.enter(name, info)
}

func joined(done []string, name string) string {
	return path.Join(path.Join(done...), name)
}

func outside(what string) error {
	return &refusal{fmt.Sprintf("%s: %v", what, ErrOutside), "name a path below the workspace", ErrOutside}
}
