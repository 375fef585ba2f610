package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// What a dead run left is found again by what moves with it. A repository may have been
// moved since, and its absolute paths say nothing; or copied, and then they say that
// the other one is meant.

// name says which of the trees of a repository this is: "." for the main one,
// worktrees/<id> for a linked one, copies/<name> for that of a copy of the run.
func (t *Tree) name() string {
	if t.copy != nil {
		return copiesName + t.copy.Name
	}
	return t.id
}

const (
	mainName   = "."
	linkedName = "worktrees/"
	copiesName = "copies/"
)

// idOf is the name of the tree with that git directory; "" if it is none of ours.
func (r *Repo) idOf(gitDir string) string {
	common := r.common
	switch {
	case within(gitDir, common): // a copy's private git directory holds its common one
		return mainName
	case filepath.Dir(gitDir) == filepath.Join(common, linkedName):
		return linkedName + filepath.Base(gitDir)
	}
	return ""
}

// errCopyGone means that a ledger is for a copy that is not there any more, or was one
// of the repository that this one was copied from.
var errCopyGone = errors.New("its copy is gone")

// rootOf brings the root of a ledger up to date: where its tree is now. An error means
// that it is not known, and that the ledger may not be carried out.
func (r *Repo) rootOf(l *ledger) error {
	name := string(l.Tree)
	if copied, ok := strings.CutPrefix(name, copiesName); ok {
		return r.copyOf(l, copied)
	}
	id, linked := strings.CutPrefix(name, linkedName)
	if linked && (id != filepath.Base(id) || id == "..") || !linked && name != mainName {
		return fmt.Errorf("%q is no tree of this repository", name)
	}
	gitDir := filepath.Join(r.common, name)
	// Where it was counts first: a tree may have been copied without its git directory.
	switch {
	case leadsTo(string(l.Root), gitDir):
		return nil
	case name == r.tree.id:
		l.Root = bytePath(r.tree.Root)
		return nil
	}
	root := filepath.Dir(r.common)
	if linked {
		text, _ := readPlain(filepath.Join(gitDir, "gitdir")) // without it there is no tree
		at := strings.TrimRight(string(text), "\r\n")
		if !filepath.IsAbs(at) {
			at = filepath.Join(gitDir, at)
		}
		root = filepath.Dir(at)
	}
	if !leadsTo(root, gitDir) {
		return fmt.Errorf("the tree is not at %s any more: %w", l.Root, fs.ErrNotExist)
	}
	l.Root = bytePath(root)
	return nil
}

// copyOf is rootOf for a copy of the run that made the ledger.
func (r *Repo) copyOf(l *ledger, name string) error {
	if err := checkName("copy", name); err != nil {
		return err
	}
	copies := r.copiesOf(filepath.Dir(l.dir))
	if copies == "" {
		return errCopyGone
	}
	l.Root = bytePath(filepath.Join(copies, name, copyTree))
	if err := l.rooted(); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errCopyGone, err)
	} else if err != nil {
		return err
	}
	return nil
}

// homeOf says by two marks whose copies lie in a folder: the path of the repository,
// and the number of the lease file, which is another one after the repository was
// copied, but not after it was moved.
func (r *Repo) homeOf(lease fs.FileInfo, err error) (string, error) {
	if err != nil {
		return "", err
	}
	number := uint64(0)
	if st, ok := lease.Sys().(*syscall.Stat_t); ok {
		number = st.Ino
	}
	return fmt.Sprintf("%s-%x", filepath.Base(r.stores()[1]), number), nil
}

// copiesOf is the folder with the copies of a run whose folder in the store is given; ""
// if there is none. The lease says where, and is believed only if that is a folder that
// we would have made: what is found there is deleted.
func (r *Repo) copiesOf(run string) string {
	lease := filepath.Join(run, "lease")
	copies, err := filepath.EvalSymlinks(string(readLease(lease).Copies))
	if err != nil || filepath.Base(filepath.Dir(copies)) != "copies" {
		return ""
	}
	mine, err := r.homeOf(os.Lstat(lease))
	if err != nil {
		return ""
	}
	home, ok := strings.CutSuffix(filepath.Base(copies), "@"+filepath.Base(run))
	path, number, parted := strings.Cut(home, "-")
	myPath, myNumber, _ := strings.Cut(mine, "-")
	if !ok || !parted || path != myPath && number != myNumber {
		return ""
	}
	return copies
}
