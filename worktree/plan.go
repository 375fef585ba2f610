package worktree

import (
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

// plan fills the ledger with the old files, deletions first, and finds what stands in
// the way of the new ones.
func (t *Tree) plan(l *ledger, now *frozen, changes []change) error {
	var found []Conflict
	gone := map[string]bool{}
	for _, c := range changes {
		gone[c.path] = c.new == absent
	}
	sparse := map[string]bool{}
	for _, name := range now.sparse {
		sparse[name] = true
	}
	for _, c := range changes {
		e := &entry{Path: bytePath(c.path), mode: c.new}
		if c.old == "160000" || c.new == "160000" {
			found = append(found, Conflict{Path: c.path, Kind: KindSubmodule})
			continue
		}
		if !safePath(c.path) {
			return fmt.Errorf("path %q does not belong into a working tree", c.path)
		}
		folders, free := t.way(c.path, gone)
		if !free {
			found = append(found, Conflict{Path: c.path, Kind: KindInTheWay})
			continue
		}
		var err error
		if len(folders) == 0 { // else nothing is there, whatever a link above leads to that goes
			if e.Old, err = look(t.file(c.path)); err != nil && !errors.Is(err, errFolder) {
				return err
			}
		}
		switch {
		case c.old == absent && err == nil && e.Old.Type != "":
			found = append(found, Conflict{Path: c.path, Kind: KindInTheWay})
		case c.old == absent && err != nil && !t.empties(c.path, gone):
			found = append(found, Conflict{Path: c.path, Kind: KindInTheWay})
		case now.stored[c.path]:
			found = append(found, Conflict{Path: c.path, Kind: KindFilter})
		case c.old != absent && sparse[c.path]:
			found = append(found, Conflict{Path: c.path, Kind: KindSparse})
		case c.old != absent && (err != nil || e.Old.Type == ""):
			found = append(found, Conflict{Path: c.path, Kind: KindMeanwhile})
		}
		if c.new != absent {
			for _, folder := range folders {
				l.Folders = append(l.Folders, bytePath(folder))
			}
		}
		l.Entries = append(l.Entries, e)
	}
	slices.Sort(l.Folders)
	l.Folders = slices.Compact(l.Folders)
	slices.SortStableFunc(l.Entries, func(a, b *entry) int {
		switch x, y := a.mode == absent, b.mode == absent; {
		case x == y:
			return 0
		case x:
			return -1
		default:
			return 1
		}
	})
	return conflict(found)
}

// way looks at the folders above a path. It returns those that are missing, and
// whether there is no file or link that stays among them.
func (t *Tree) way(name string, gone map[string]bool) (missing []string, free bool) {
	for i, r := range name {
		if r != '/' {
			continue
		}
		folder := name[:i]
		if len(missing) > 0 { // a link above that goes leads to other folders
			missing = append(missing, folder)
			continue
		}
		info, err := os.Lstat(t.file(folder))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			missing = append(missing, folder)
		case err != nil:
			return nil, false
		case !info.IsDir():
			if !gone[folder] {
				return nil, false
			}
			missing = append(missing, folder)
		}
	}
	return missing, true
}

// empties reports whether a folder is there for files in gone only, and will be empty once
// those are deleted. One that is empty now is somebody's, and so is one in it.
func (t *Tree) empties(name string, gone map[string]bool) bool {
	folders := map[string]bool{} // those with a file in gone: true
	err := filepath.WalkDir(t.file(name), func(at string, d fs.DirEntry, err error) error {
		at = strings.TrimPrefix(at, t.Root+"/")
		switch {
		case err != nil:
			return err
		case d.IsDir():
			folders[at] = false
		case !gone[at]:
			return fs.ErrExist
		default:
			for at != name {
				at = path.Dir(at)
				folders[at] = true
			}
		}
		return nil
	})
	for _, needed := range folders {
		if !needed {
			return false
		}
	}
	return err == nil
}

// safePath refuses names that git would not have written into a tree of ours.
func safePath(name string) bool {
	if path.Clean(name) != name || path.IsAbs(name) || ours(name) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}
