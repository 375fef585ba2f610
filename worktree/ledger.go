package worktree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A ledger is what an Apply is going to do, durable before the first change, so that a
// crash at any point can be finished or undone. It lies in a folder with the new files
// and the old ones.
//
// There is no mark for a path that is done: the file itself tells, by equalling what
// the ledger calls old or new. A mark could only be written before or after the change,
// and be wrong in between.
type ledger struct {
	Tree    bytePath   // which one it is for, see [Tree.name]
	Root    bytePath   // where that was; see [Repo.rootOf]
	Keep    bytePath   // folder that stays though it be empty: the one the user works in
	Folders []bytePath // that will be made, sorted: outer ones first
	Entries []*entry   // in the order in which they are carried out, deletions first
	Record  string     `json:",omitempty"` // ref that goes when this is rolled back; see [Repo.record]
	Of      string     `json:",omitempty"` // copy of the same run whose change this is: done when this is

	dir   string
	copy  string // folder of that copy, "" if it is not there
	fault func(point string) error
}

// An entry is one file to be made, replaced or deleted.
type entry struct {
	Path     bytePath // relative to the root
	Old, New state
	mode     string // git's, of the new file
}

// A bytePath is a path whose bytes survive JSON though they be no UTF-8.
type bytePath string

// MarshalText writes the path as a quoted string.
func (p bytePath) MarshalText() ([]byte, error) {
	return strconv.AppendQuoteToASCII(nil, string(p)), nil
}

// UnmarshalText reads it.
func (p *bytePath) UnmarshalText(text []byte) error {
	s, err := strconv.Unquote(string(text))
	*p = bytePath(s)
	return err
}

// Names in a ledger's folder.
const (
	ledgerName = "ledger.json"
	ledgerNew  = "new"  // new files by their paths
	ledgerOld  = "old"  // old files by the index of their entries
	ledgerTold = "told" // why Recover could do nothing, when it said so
)

// write keeps the old files and makes all of the ledger durable, itself last.
func (l *ledger) write() error {
	if err := l.fault("before ledger"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(l.dir, ledgerOld), 0o700); err != nil {
		return err
	}
	for i, e := range l.Entries {
		if e.Old.Type != "" {
			if err := keep(l.file(e), l.old(i)); err != nil {
				return err
			}
		}
	}
	// The old files' content is the user's and as durable as they made it.
	if err := errors.Join(syncTree(filepath.Join(l.dir, ledgerNew)), syncFile(filepath.Join(l.dir, ledgerOld))); err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	tmp := filepath.Join(l.dir, ledgerName+".new")
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return err
	}
	if err := syncFile(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(l.dir, ledgerName)); err != nil {
		return err
	}
	return errors.Join(syncFile(l.dir), syncFile(filepath.Dir(l.dir)), l.fault("after ledger"))
}

// readLedger reads the ledger in a folder.
func readLedger(dir string) (*ledger, error) {
	text, err := readPlain(filepath.Join(dir, ledgerName))
	if err != nil {
		return nil, err
	}
	l := &ledger{dir: dir, fault: func(string) error { return nil }}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", dir, err)
	}
	if l.Record != "" && !recordRef.MatchString(l.Record) {
		return nil, fmt.Errorf("read ledger %s: record %q", dir, l.Record)
	}
	if l.Of != "" {
		if err := checkName("copy", l.Of); err != nil {
			return nil, fmt.Errorf("read ledger %s: %w", dir, err)
		}
	}
	for _, e := range l.Entries {
		if !safePath(string(e.Path)) {
			return nil, fmt.Errorf("read ledger %s: path %q", dir, e.Path)
		}
	}
	for _, p := range l.Folders {
		if !safePath(string(p)) {
			return nil, fmt.Errorf("read ledger %s: path %q", dir, p)
		}
	}
	return l, nil
}

func (l *ledger) at(p bytePath) string  { return string(l.Root + "/" + p) }
func (l *ledger) file(e *entry) string  { return l.at(e.Path) }
func (l *ledger) fresh(e *entry) string { return filepath.Join(l.dir, ledgerNew, string(e.Path)) }
func (l *ledger) old(i int) string      { return filepath.Join(l.dir, ledgerOld, fmt.Sprint(i)) }

// siblingPrefix begins the names of our files that stand in a tree for a moment.
const siblingPrefix = ".skein-apply-"

// sibling is a name beside a file, for content that comes from another file system.
func (l *ledger) sibling(i int) string {
	serial := strings.TrimPrefix(filepath.Base(l.dir), "apply-")
	return fmt.Sprintf("%s/%s%s-%d", filepath.Dir(l.file(l.Entries[i])), siblingPrefix, serial, i)
}

// back is one for the way back.
func (l *ledger) back(i int) string { return l.sibling(i) + "-back" }

// removeSiblings removes what a life that was killed may have left of them.
func (l *ledger) removeSiblings(i int) {
	_ = os.Remove(l.sibling(i))
	_ = os.Remove(l.back(i))
}

// done reports whether every file is the new one.
func (l *ledger) done() bool {
	for i, e := range l.Entries {
		if e.still(l.file(e), e.New) != nil || l.stray(i, e) != "" {
			return false
		}
	}
	return true
}

// finish makes the changes durable, removes folders that the deletions left empty, as
// git does, marks the copy whose change it is, and then removes the ledger.
func (l *ledger) finish() error {
	for i, e := range l.Entries {
		l.removeSiblings(i)
		for dir := path.Dir(string(e.Path)); e.New.Type == "" && dir != "."; dir = path.Dir(dir) {
			if strings.HasPrefix(string(l.Keep), dir+"/") || syscall.Rmdir(l.at(bytePath(dir))) != nil {
				break
			}
		}
	}
	if err := l.sync(); err != nil {
		return err
	}
	if l.copy != "" {
		if err := markDone(l.copy); err != nil {
			return err
		}
	}
	if err := l.fault("before end of ledger"); err != nil {
		return err
	}
	return l.remove()
}

// rollBack restores every file that still equals what was written. It returns the
// paths that somebody changed since: those stay as they are.
func (l *ledger) rollBack() (others []string, err error) {
	// A tree that is not there, such as one not mounted now, would look changed by others.
	if err := l.rooted(); err != nil {
		return nil, err
	}
	if l.copy != "" {
		if err := unmarkDone(l.copy); err != nil {
			return nil, err
		}
	}
	var errs []error
	for i, e := range slices.Backward(l.Entries) {
		mine, err := l.restore(i, e)
		if err == nil {
			l.removeSiblings(i)
		}
		if !mine {
			others = append(others, string(e.Path))
		}
		errs = append(errs, err)
	}
	for _, folder := range slices.Backward(l.Folders) {
		_ = syscall.Rmdir(l.at(folder)) // not if anything is in it, or if it is none
	}
	if err := errors.Join(append(errs, l.sync())...); err != nil {
		return others, err
	}
	return others, l.remove()
}

// sync makes what was done durable: the folders in which a name changed. The ledger may not
// go before, or a power cut could leave neither the change nor what takes it back.
func (l *ledger) sync() error {
	folders := map[string]bool{}
	for _, e := range l.Entries {
		folders[filepath.Dir(l.file(e))] = true
	}
	for _, made := range l.Folders {
		folders[filepath.Dir(l.at(made))] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		err := l.fault("before sync of " + dir)
		if err == nil {
			err = syncFile(dir)
		}
		switch {
		case err == nil, missing(err): // it was removed just now
		case errors.Is(err, fs.ErrPermission): // nobody but its owner can, who let us write there and not look
		default:
			return fmt.Errorf("make durable: %w", err)
		}
	}
	return nil
}

// rooted reports by its error that the tree is gone.
func (l *ledger) rooted() error {
	info, err := os.Stat(string(l.Root)) // that of an attached copy is a link of the kernel's
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: %w: not a folder", l.Root, fs.ErrNotExist)
	}
	return err
}

// restore puts one old file back. False: it is neither the old nor the new one.
func (l *ledger) restore(i int, e *entry) (bool, error) {
	file := l.file(e)
	switch {
	case !plainFolders(string(l.Root), path.Dir(string(e.Path))):
		return false, nil
	case e.still(file, e.Old) == nil:
		return true, nil
	case e.still(file, e.New) != nil:
		return false, nil
	case l.stray(i, e) != "":
		return false, put(l.stray(i, e), file, l.back(i), e.New.Type == "")
	case e.Old.Type == "":
		return true, os.Remove(file)
	case e.New.Type != "":
		return true, put(l.old(i), file, l.back(i), false)
	}
	removeEmpty(file) // a folder that took the place of the file
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return true, err
	}
	err := put(l.old(i), file, l.back(i), true)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return true, err
}

// remove ends the ledger: once its file is gone nothing is to be recovered, and what
// cannot be removed of the rest goes with the folder of the run.
func (l *ledger) remove() error {
	err := os.Remove(filepath.Join(l.dir, ledgerName))
	if err == nil {
		_ = os.RemoveAll(l.dir)
	}
	return err
}
