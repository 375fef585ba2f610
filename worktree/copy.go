package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// A Copy is a folder with the files of one snapshot and a git directory of its own.
// One writer works in it at a time. Its owner removes it; what a crash leaves is found
// by [Repo.Recover].
type Copy struct {
	Name string // the writer's ordinal, such as "0.2"
	Root string // folder with the files of the whole working tree; see [Copy.Attach]
	Path string // Root, or the subdirectory of it that the repository was opened at

	// Backend is how the copy was made, [Overlay] or [Fresh]; Why is why it was not made
	// in a better way.
	Backend, Why string

	// GitDir is the writer's private git directory. It belongs at Root/.git, where that of
	// a fresh copy sits, so a box has to show Root at the path of the parent's root, and
	// GitDir in it. The writer may do anything to it: we never read it again.
	GitDir string

	// Objects are the folders that GitDir borrows from, absolute. A box must show
	// each of them, read-only, at its own path, also where that lies below Root's new
	// path: the user's .git/objects then appears inside the copy's .git, at a place
	// that the layout of GitDir leaves free for it.
	Objects []string

	// Base is the snapshot that the copy was made of.
	Base Snapshot

	// Without are the files that .worktreeinclude names and that did not come along.
	Without []Left

	repo   *Repo
	folder string // holds tree, our git directory, and the mark that both are whole
	tree   *Tree

	layered  bool   // made by [Overlay]
	layer    *layer // nil for a fresh one, and in a later run
	gone     bool   // it is removed, and its layer given back
	attached bool   // see [Copy.Attach]

	left     []Left // of the last Collect
	leftAt   string // where Remove put them
	unwanted bool   // what is there is not to be kept
	doubt    error  // why it is not known whether the copy is whole
}

// Files in the folder of a copy.
const (
	copyTree  = "tree"       // the writer's, if fresh; else
	copyUpper = "upper"      // what it changed
	copyWork  = "work"       // the kernel's
	copyOwn   = "own"        // its git directory
	copyGit   = "git"        // ours: what Collect runs git with
	copyMark  = "base"       // id of the snapshot; written when the copy is whole
	copyDone  = "done"       // present when its change stands in the tree it was made of, or on a ref
	copyAside = "aside"      // what git cannot be let read, out of the tree
	copyAlong = "along"      // what came along into it
	copySubs  = "submodules" // digests of the submodules that came along
	copyWhat  = "message"    // of its change, if nobody lives to collect it
	copyTold  = "told"       // why reclaiming left the copy in place, when it said so
)

// Tree is the copy as a tree, for the writer's own writers.
func (c *Copy) Tree() *Tree { return c.tree }

// Copy makes a copy of a snapshot in the cache. Ignored files come along as the tree's
// .worktreeinclude says. Copies may be made at the same time. Name is unique among the
// copies of the run that are not removed.
func (r *Repo) Copy(ctx context.Context, s Snapshot, name string) (*Copy, error) {
	if err := checkName("copy", name); err != nil {
		return nil, fmt.Errorf("make copy: %w", err)
	}
	if err := r.begin(ctx); err != nil {
		return nil, fmt.Errorf("make copy %s: %w", name, err)
	}
	parent := r.copiesFolder()
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make copy %s: %w", name, err)
	}
	folder := filepath.Join(parent, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make copy %s: %w", name, err)
	}
	c, err := r.newCopy(ctx, folder, s)
	if err == nil {
		err = c.bringAlong(ctx, s.from)
	}
	if err != nil {
		c.leave()
		return nil, errors.Join(fmt.Errorf("make copy %s: %w", name, err), removeAll(folder))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copies[name] = c
	return c, nil
}

// newCopy makes the copy in an empty folder. Beside an error it may be one that has a layer.
func (r *Repo) newCopy(ctx context.Context, folder string, s Snapshot) (*Copy, error) {
	l, why, err := r.layersFor(ctx, s)
	if err != nil {
		return nil, err
	}
	c := r.copyAt(folder, s, l != nil)
	c.layer, c.Why = l, why
	user, err := r.settings(ctx)
	if err == nil && l != nil {
		err = c.fillUpper(ctx, user)
	} else if err == nil {
		err = c.fill(ctx, user)
	}
	if err != nil {
		return c, err
	}
	return c, os.WriteFile(filepath.Join(folder, copyMark), []byte(s.Commit), 0o600)
}

// copyAt describes the copy in folder.
func (r *Repo) copyAt(folder string, s Snapshot, layered bool) *Copy {
	git := filepath.Join(folder, copyGit)
	c := &Copy{
		Name: filepath.Base(folder), Backend: Fresh, Root: filepath.Join(folder, copyTree), Objects: r.borrowed(),
		Base: s, repo: r, folder: folder, layered: layered,
	}
	c.GitDir = filepath.Join(c.Root, ".git")
	if layered {
		c.Backend, c.Root, c.GitDir = Overlay, c.upper(), filepath.Join(folder, copyOwn)
	}
	root := c.Root
	c.Path = filepath.Join(root, r.tree.Prefix)
	c.tree = &Tree{
		Root: root, Path: c.Path, Prefix: r.tree.Prefix, repo: r, index: filepath.Join(git, "index"),
		// Asking a submodule of the writer for its state would run git with its configuration.
		submodules: "all", branch: s.Branch, copy: c,
		at: place{dir: root, gitDir: git, work: root, objects: r.objects()},
	}
	return c
}

// fill makes our git directory, checks the files out with it, and makes the writer's.
func (c *Copy) fill(ctx context.Context, user settings) error {
	if err := os.Mkdir(c.Root, 0o700); err != nil {
		return err
	}
	if err := c.makeOurs(user); err != nil {
		return fmt.Errorf("make git directory: %w", err)
	}
	at := c.tree.at.with(c.tree.index)
	if _, err := c.repo.git.run(ctx, at, nil, "read-tree", c.Base.Commit); err != nil {
		return err
	}
	if len(c.Base.sparse) > 0 {
		if _, err := c.repo.git.run(ctx, at, list(c.Base.sparse), "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
			return err
		}
	}
	at.config = append(at.config, "checkout.workers=0") // as many as there are processors
	if _, err := c.repo.git.run(ctx, at, nil, "checkout-index", "-a", "-u", "-q"); err != nil {
		return err
	}
	if err := c.bringSubmodules(ctx, user); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Path, 0o700); err != nil { // a subdirectory git has no files of
		return err
	}
	if err := c.makePrivate(ctx, user); err != nil {
		return fmt.Errorf("make private git directory: %w", err)
	}
	return copyIndexIfAny(c.tree.index, filepath.Join(c.GitDir, "index"))
}

// markDone notes durably that the change of the copy in a folder stands in the tree, or on a
// ref: it is not kept when the process dies before the copy is removed. One that is not
// there any more needs no mark.
func markDone(folder string) error {
	mark := filepath.Join(folder, copyDone)
	err := os.WriteFile(mark, nil, 0o600)
	if missing(err) {
		return nil
	}
	if err := errors.Join(err, syncFile(mark), syncFile(folder)); err != nil {
		return fmt.Errorf("note that copy %s is done: %w", filepath.Base(folder), err)
	}
	return nil
}

// unmarkDone takes that back.
func unmarkDone(folder string) error {
	err := os.Remove(filepath.Join(folder, copyDone))
	if missing(err) {
		return nil
	}
	return errors.Join(err, syncFile(folder))
}

// Remove deletes the copy. The caller has merged or kept what it collected, or does not
// want it; no process may work in the copy any more. The files that the last Collect
// left out exist nowhere else: they are moved, by their paths, to the folder that is
// returned, "" if there are none. Remove may be called again after an error; a copy it
// was called for is never taken for unfinished work.
func (c *Copy) Remove(context.Context) (left string, err error) {
	if err := c.rescue(); err != nil {
		return c.leftAt, fmt.Errorf("remove copy %s: %w", c.Name, err)
	}
	// Without the mark nobody takes a copy that is half deleted for one with deletions.
	if err := c.Disown(); err != nil {
		return c.leftAt, fmt.Errorf("remove copy %s: %w", c.Name, err)
	}
	if err := removeAll(c.folder); err != nil {
		return c.leftAt, fmt.Errorf("remove copy %s: %w", c.Name, err)
	}
	c.leave()
	c.repo.mu.Lock()
	defer c.repo.mu.Unlock()
	delete(c.repo.copies, c.Name)
	return c.leftAt, nil
}

// Disown says that nothing in the copy is wanted, whatever becomes of it: a run that finds it
// later removes it and keeps nothing.
func (c *Copy) Disown() error {
	c.unwanted = true
	if err := os.Remove(filepath.Join(c.folder, copyMark)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// leave gives the layer of a copy back, once.
func (c *Copy) leave() {
	if c != nil && !c.gone {
		c.gone = true
		c.repo.leave(c.layer)
	}
}

// rescue moves what was left out into a folder beside the folders of copies.
func (c *Copy) rescue() error {
	if len(c.left) == 0 {
		return nil
	}
	aside, err := c.aside()
	if err != nil {
		return err
	}
	if c.leftAt == "" {
		if c.leftAt, err = c.leftFolder(); err != nil {
			return err
		}
	}
	for _, l := range c.left {
		from := c.tree.stored(l.Path)
		switch at := aside[l.Path]; {
		case l.Reason == LeftUnsafe && at != "":
			from = at
		case !plainFolders(c.tree.at.work, path.Dir(l.Path)):
			return fmt.Errorf("move %s: a link leads to it", l.Path)
		}
		if err := move(from, filepath.Join(c.leftAt, l.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c.left = nil
	return nil
}

// leftFolder makes a folder for what is left of the copy: left/<run>/<name> in the
// cache, with a number where an earlier life of the run had a copy of that name.
func (c *Copy) leftFolder() (string, error) {
	run := filepath.Dir(c.folder)
	parent := filepath.Join(filepath.Dir(filepath.Dir(run)), "left", filepath.Base(run))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		folder := filepath.Join(parent, c.Name)
		if n > 1 {
			folder += fmt.Sprint("-", n)
		}
		if err := os.Mkdir(folder, 0o700); !errors.Is(err, fs.ErrExist) {
			return folder, err
		}
	}
}

// removeAll removes a folder, also where a writer took the permissions away.
func removeAll(folder string) error {
	if os.RemoveAll(folder) == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // before the folder is read: WalkDir calls first
		}
		return nil
	})
	return os.RemoveAll(folder)
}
