package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Layers are the folders of a copy that a box shows as one tree: see [Copy.Layers].
type Layers struct {
	Base  string   // the lowest one; it has an empty folder .git, where GitDir is shown
	Above []string // read-only layers over it, the topmost first
	Upper string   // takes what the writer changes
	Work  string   // an empty folder for the kernel, on the file system of Upper
}

// Layers says what a copy made by [Overlay] consists of; nil for one that is a folder.
// Base and Above are never written.
func (c *Copy) Layers() *Layers {
	if c.layer == nil {
		return nil
	}
	l := &Layers{Base: c.layer.file(layerTree), Upper: c.upper(), Work: filepath.Join(c.folder, copyWork)}
	if below := c.layer.below; below != nil {
		l.Base, l.Above = below.file(layerTree), []string{l.Base}
	}
	return l
}

// Attach tells where the layers of the copy are one tree now: while its box is open that
// is a folder of the box, "" ends it. Root and Path lead there. Only Apply to the copy
// needs it: to read a copy what its writer changed is enough. The copy's owner calls it,
// while nothing else uses the copy.
func (c *Copy) Attach(root string) {
	if !c.layered {
		return
	}
	if c.attached = root != ""; !c.attached {
		root = c.upper()
	}
	c.Root, c.Path = root, filepath.Join(root, c.repo.tree.Prefix)
	c.tree.Root, c.tree.Path = c.Root, c.Path
}

// upper is the folder of an overlay copy with what its writer changed.
func (c *Copy) upper() string { return filepath.Join(c.folder, copyUpper) }

// layersFor gives the layers for a copy of a snapshot; nil, and why, if it needs a fresh
// one.
func (r *Repo) layersFor(ctx context.Context, s Snapshot) (*layer, string, error) {
	backend, why := r.Backend()
	if backend != Overlay {
		return nil, why, nil
	}
	l, err := (*layer)(nil), error(errNoLayer("not all files of the tree are checked out"))
	if len(s.sparse) == 0 {
		tree := s.tree
		if tree == "" {
			if tree, err = r.commitTree(ctx, s.Commit); err != nil {
				return nil, "", err
			}
		}
		l, err = r.layerOf(ctx, tree)
	}
	if none := errNoLayer(""); errors.As(err, &none) {
		if r.asked.Backend == Overlay {
			return nil, "", &BackendError{Overlay, string(none)}
		}
		return nil, string(none), nil
	}
	return l, "", err
}

// fillUpper makes our git directory, the writer's, and the folders of its layer. Nothing
// here takes longer for a larger tree.
func (c *Copy) fillUpper(ctx context.Context, user settings) error {
	// The box may be another user's, who must be able to enter.
	if err := errors.Join(os.MkdirAll(filepath.Join(c.upper(), c.repo.tree.Prefix), 0o700), os.Mkdir(filepath.Join(c.folder, copyWork), 0o700)); err != nil {
		return err
	}
	if err := c.makeOurs(user); err != nil {
		return fmt.Errorf("make git directory: %w", err)
	}
	// The kernel shows other numbers for the files of a layer than the index knows.
	user.core = append(user.core[:len(user.core):len(user.core)], "checkStat = minimal", "trustctime = false", "splitIndex = false")
	if err := c.makePrivate(ctx, user); err != nil {
		return fmt.Errorf("make private git directory: %w", err)
	}
	if err := c.splitIndex(); err != nil {
		return fmt.Errorf("make private git directory: index: %w", err)
	}
	return nil
}

// splitIndex gives the writer an index of which nearly all is in a file that all copies
// of the layer share, and only read. The first time git writes this index it writes all of it. The
// file is new: what a writer changes in the second in which the layer was made is newer
// than what the index knows.
func (c *Copy) splitIndex() error {
	shared, err := c.layer.sharedIndex()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.layer.file(layerSplit))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.GitDir, "index"), text, 0o600)
	}
	if err == nil {
		err = os.Symlink(shared, filepath.Join(c.GitDir, filepath.Base(shared)))
	}
	c.Objects = append(c.Objects, filepath.Dir(shared))
	return err
}
