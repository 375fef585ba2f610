package worktree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A GoneError tells that somebody removed what a run works with, while it worked.
type GoneError struct{ Path string }

func (e *GoneError) Error() string { return e.Path + " is gone: it was removed while the run worked" }

// Hint says what to do next.
func (e *GoneError) Hint() string { return "skein worktrees tells of copies that are left" }

// gone is a GoneError for the first path that is not there; nil if all are.
func gone(paths ...string) error {
	for _, path := range paths {
		if _, err := os.Lstat(path); missing(err) {
			return &GoneError{path}
		}
	}
	return nil
}

// Gone is a [GoneError] if somebody removed the copy, with all that its writer did.
func (c *Copy) Gone() error { return gone(c.folder, c.tree.at.work) }

// A Stray is a copy of a run that our git directory knows nothing of: somebody removed what
// stood there. Nobody can tell what was changed in it, and it stays until it is removed by
// hand.
type Stray struct {
	Session, Run, Name string
	Folder             string // of the copy
	Files              string // folder in it with the files that its writer could see, or changed
}

// errStray is why nothing is done with a [Stray].
var errStray = errors.New("what our git directory knew of its run was removed: take what you need of its files, and remove its folder")

// Strays lists the copies of this repository, at its path, that no run knows of. Anybody may
// call it at any time; it changes nothing.
func (r *Repo) Strays() ([]Stray, error) {
	runs, err := glob(filepath.Join(r.cache, "copies"), filepath.Base(r.stores()[1])+"-*@*@*")
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	var list []Stray
	for _, run := range runs {
		parts := strings.SplitN(filepath.Base(run), "@", 3)
		id := runID{parts[1], parts[2]}
		if r.known(id, run) {
			continue
		}
		copies, err := glob(run, "*")
		if err != nil {
			return nil, fmt.Errorf("list copies: %w", err)
		}
		for _, folder := range copies {
			s := Stray{Session: id.session, Run: id.run, Name: filepath.Base(folder), Folder: folder, Files: filepath.Join(folder, copyTree)}
			if upper := filepath.Join(folder, copyUpper); gone(upper) == nil {
				s.Files = upper
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// known reports whether a store knows a run that has its copies there.
func (r *Repo) known(id runID, copies string) bool {
	for _, store := range r.stores() {
		if r.copiesOf(filepath.Join(store, "runs", id.folder())) == copies {
			return true
		}
	}
	return false
}

// tellStrays tells of each stray once.
func (r *Repo) tellStrays() (list []Recovered, err error) {
	strays, err := r.Strays()
	for _, s := range strays {
		if !told(filepath.Join(s.Folder, copyTold), errStray) {
			list = append(list, Recovered{Session: s.Session, Run: s.Run, Name: s.Name, Action: Failed, Folder: s.Files, Err: errStray})
		}
	}
	return list, err
}
