package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Tree is a directory under git that can be snapshot and applied to: the user's, or
// the one of a [Copy], so that a writer's own writers branch from it and merge into it.
type Tree struct {
	Root   string // of the working tree, links resolved
	Path   string // as it was opened: Root or a subdirectory of it, links not resolved
	Prefix string // of Path inside Root, with a slash at its end; "" at the root

	repo       *Repo
	id         string // of the user's: see [Tree.name]
	at         place
	index      string // what a snapshot starts from
	submodules string // value of --ignore-submodules
	branch     string // of a copy: that of the snapshot it was made of
	copy       *Copy  // whose tree it is; nil for the user's
}

// A Snapshot is a commit that holds a tree as it was: tracked changes staged or not,
// untracked files, not ignored ones, nothing below .skein.
type Snapshot struct {
	Commit      string
	Head        string // commit the tree was on; "" before the first commit
	Branch      string // "" when detached
	Uncommitted int    // files that differ from Head
	Left        []Left // files of the tree that are not in it

	sparse     []string
	submodules []submodule
	tree       string // of Commit, where it is known
	from       *Tree  // whose snapshot it is
}

// An UnmergedError refuses a tree with a merge that is not solved yet.
type UnmergedError struct{ Path string }

func (e *UnmergedError) Error() string { return "unmerged entries in the index, first " + e.Path }

// Hint says what to do next.
func (e *UnmergedError) Hint() string {
	return "solve the merge first (git status lists the files), then git add them"
}

// Snapshot freezes the tree as it is now. It may be called at any time; what changes
// while it reads is in it or not.
func (t *Tree) Snapshot(ctx context.Context) (Snapshot, error) {
	ctx, done := t.guard(ctx)
	defer done()
	s, err := t.snapshot(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", t.Path, err)
	}
	return s, nil
}

// Branch is the branch the tree is on, "" when HEAD is detached. A copy is on the branch
// of the tree it was made of.
func (t *Tree) Branch(ctx context.Context) (string, error) {
	if t.copy != nil {
		return t.branch, nil
	}
	name, err := t.repo.git.line(ctx, t.at, "symbolic-ref", "-q", "--short", "HEAD")
	if err != nil && exitOf(err) != 1 {
		return "", fmt.Errorf("read branch of %s: %w", t.Path, err)
	}
	return name, nil
}

func (t *Tree) snapshot(ctx context.Context) (s Snapshot, err error) {
	if err := t.repo.begin(ctx); err != nil {
		return Snapshot{}, err
	}
	s.from = t
	if s.Head, err = t.head(ctx); err != nil {
		return Snapshot{}, err
	}
	if s.Branch, err = t.Branch(ctx); err != nil {
		return Snapshot{}, err
	}
	var parents []string
	if s.Head != "" {
		parents = []string{s.Head}
	}
	held := s.Head // of a copy: the snapshot it was made of
	if t.copy == nil {
		if held, err = t.repo.holdHead(ctx, s.Head); err != nil {
			return Snapshot{}, err
		}
	}
	f, err := t.freeze(ctx, rules{}, "snapshot\n", held, parents...)
	if err != nil {
		return Snapshot{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	s.Commit, s.Left, s.sparse, s.tree = f.commit, f.left, f.sparse, f.tree
	if err := t.lookForSubmodules(ctx, &s); err != nil {
		return Snapshot{}, fmt.Errorf("look into submodules: %w", err)
	}
	if s.Uncommitted, err = t.repo.count(ctx, s.Head, s.Commit); err != nil {
		return Snapshot{}, err
	}
	return s, t.repo.hold(ctx, s.Commit)
}

// head is the commit HEAD names, "" before the first one.
func (t *Tree) head(ctx context.Context) (string, error) {
	if t.copy != nil {
		return t.copy.Base.Commit, nil
	}
	id, err := t.repo.git.line(ctx, t.at, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if exitOf(err) == 1 {
		return "", nil
	}
	return id, err
}

// frozen is a tree as a commit, with the index that matches it.
type frozen struct {
	*staging
	tree   string
	commit string
}

// freeze commits the tree as it is now, without any ref; held is as in [desk.commit]. The
// caller closes the desk of what it returns.
func (t *Tree) freeze(ctx context.Context, r rules, message, held string, parents ...string) (_ *frozen, err error) {
	d, err := t.desk(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	s, tree, err := d.stage(ctx, r)
	if err != nil {
		return nil, err
	}
	id, err := d.commit(ctx, tree, message, held, parents...)
	if err != nil {
		return nil, err
	}
	return &frozen{s, tree, id}, nil
}

// count is the number of files in which two commits differ; from "" all files count.
func (r *Repo) count(ctx context.Context, from, to string) (int, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to}
	if from == "" {
		args = []string{"ls-tree", "-r", "-z", "--name-only", to}
	}
	out, err := r.git.run(ctx, r.ours(), nil, args...)
	return len(slices.DeleteFunc(fields(out), ours)), err
}
