package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A Copy is a folder with the files of one snapshot and a git directory of its own.
// One writer works in it at a time. Its owner removes it; what a crash leaves is found
// by [Repo.Recover].
type Copy struct {
	Name string // the writer's ordinal, such as "0.2"
	Root string // folder with the files of the whole working tree
	Path string // Root, or the subdirectory of it that the repository was opened at

	// GitDir is the writer's private git directory. It sits at Root/.git, so a box only
	// has to show Root at the path of the parent's root. The writer may do anything to
	// it: we never read it again.
	GitDir string

	// Objects are the object folders that GitDir borrows from, absolute. A box must show
	// each of them, read-only, at its own path, also where that lies below Root's new
	// path: the user's .git/objects then appears inside the copy's .git, at a place
	// that the layout of GitDir leaves free for it.
	Objects []string

	// Base is the snapshot that the copy was made of.
	Base Snapshot

	repo   *Repo
	folder string // holds tree, our git directory, and the mark that both are whole
	tree   *Tree
}

// Files in the folder of a copy.
const (
	copyTree  = "tree"  // the writer's
	copyGit   = "git"   // ours: what Collect runs git with
	copyMark  = "base"  // id of the snapshot; written when the copy is whole
	copyAside = "aside" // what git cannot be let read, out of the tree
	copyTold  = "told"  // present when reclaiming left the copy in place, and said so
)

// Tree is the copy as a tree, for the writer's own writers.
func (c *Copy) Tree() *Tree { return c.tree }

// Copy checks a snapshot out into a new folder of the cache. Copies may be made at the
// same time. Name is unique among the copies of the run that are not removed.
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
	c := r.copyAt(folder, s)
	if err := c.fill(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make copy %s: %w", name, err), removeAll(folder))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copies[name] = c
	return c, nil
}

// copyAt describes the copy in folder.
func (r *Repo) copyAt(folder string, s Snapshot) *Copy {
	root := filepath.Join(folder, copyTree)
	git := filepath.Join(folder, copyGit)
	c := &Copy{
		Name: filepath.Base(folder), Root: root, Path: filepath.Join(root, r.tree.Prefix),
		GitDir: filepath.Join(root, ".git"), Objects: r.borrowed(), Base: s, repo: r, folder: folder,
	}
	c.tree = &Tree{
		Root: root, Path: c.Path, Prefix: r.tree.Prefix, repo: r, index: filepath.Join(git, "index"),
		// Asking a submodule of the writer for its state would run git with its configuration.
		submodules: "all", branch: s.Branch, copy: c,
		at: place{dir: root, gitDir: git, work: root, objects: r.objects()},
	}
	return c
}

// fill makes our git directory, checks the files out with it, and makes the writer's.
func (c *Copy) fill(ctx context.Context) error {
	user, err := c.repo.settings(ctx)
	if err != nil {
		return err
	}
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
	if err := os.MkdirAll(c.Path, 0o700); err != nil { // a subdirectory git has no files of
		return err
	}
	if err := c.makePrivate(ctx, user); err != nil {
		return fmt.Errorf("make private git directory: %w", err)
	}
	return os.WriteFile(filepath.Join(c.folder, copyMark), []byte(c.Base.Commit), 0o600)
}

// Remove deletes the copy with everything in it. The caller has collected it, or does
// not want what it holds. No process may work in it any more.
func (c *Copy) Remove(context.Context) error {
	if err := removeAll(c.folder); err != nil {
		return fmt.Errorf("remove copy %s: %w", c.Name, err)
	}
	c.repo.mu.Lock()
	defer c.repo.mu.Unlock()
	delete(c.repo.copies, c.Name)
	return nil
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
