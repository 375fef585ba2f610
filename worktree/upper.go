package worktree

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// The writer of an overlay copy changes files in a layer of its own, the upper. To git
// that is a sparse checkout: what does not lie in it is as in the index, whose entries
// are all marked as not checked out to begin with. So git reads what was changed and
// nothing else, and never needs the tree as the writer saw it; rules and attributes that
// were not changed it finds in the index.
//
// The upper itself tells all: the kernel takes names away by whiteouts, and makes
// folders opaque that took the place of others. A writer cannot forge either: inside its
// box the kernel refuses to make them.

// An upper says what lies in a writer's layer.
type upper struct {
	files   map[string]bool // files, links and special files
	gone    map[string]bool // whiteouts
	folders map[string]bool // true: opaque
}

// Where an entry of the index is.
type whereabouts int

const (
	below   whereabouts = iota // as it was: not in the upper
	above                      // in the upper
	nowhere                    // deleted, or something else took its place
)

// readUpper walks a writer's layer. Folders that may not be read count as unchanged; git
// names them.
func readUpper(root string) (*upper, error) {
	u := &upper{files: map[string]bool{}, gone: map[string]bool{}, folders: map[string]bool{}}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(at, root+"/")
		switch {
		case at == root:
			return err
		case name == ".git": // where the writer's git directory is shown
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			u.folders[name], err = isOpaque(at)
			return err
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case isWhiteout(info):
			u.gone[name] = true
		default:
			u.files[name] = true
		}
		return nil
	})
	return u, err
}

// find says where the file of an index entry is.
func (u *upper) find(name string) whereabouts {
	for i, r := range name {
		if r != '/' {
			continue
		}
		folder := name[:i]
		opaque, there := u.folders[folder]
		switch {
		case u.files[folder], u.gone[folder]:
			return nowhere
		case !there:
			return below
		case opaque:
			if u.files[name] {
				return above
			}
			return nowhere
		}
	}
	_, folder := u.folders[name]
	switch {
	case u.files[name]:
		return above
	case folder, u.gone[name]:
		return nowhere
	}
	return below
}
