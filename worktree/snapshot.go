package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A Tree is a directory under git that can be snapshot and applied to: the user's, or
// the one of a [Copy], so that a writer's own writers branch from it and merge into it.
type Tree struct {
	Root   string // of the working tree, links resolved
	Path   string // as it was opened: Root or a subdirectory of it, links not resolved
	Prefix string // of Path inside Root, with a slash at its end; "" at the root

	repo       *Repo
	at         place
	index      string // what a snapshot starts from
	submodules string // value of --ignore-submodules
	branch     string // of a copy: that of the snapshot it was made of
	copied     bool
}

// A Snapshot is a commit that holds a tree as it was: tracked changes staged or not,
// untracked files, not ignored ones, nothing below .skein.
type Snapshot struct {
	Commit      string
	Head        string // commit the tree was on; "" before the first commit
	Branch      string // "" when detached
	Uncommitted int    // files that differ from Head
	Left        []Left // files of the tree that are not in it

	sparse []string
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
	s, err := t.snapshot(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %s: %w", t.Path, err)
	}
	return s, nil
}

// Branch is the branch the tree is on, "" when HEAD is detached. A copy is on the branch
// of the tree it was made of.
func (t *Tree) Branch(ctx context.Context) (string, error) {
	if t.copied {
		return t.branch, nil
	}
	name, err := t.repo.git.line(ctx, t.at, "symbolic-ref", "-q", "--short", "HEAD")
	if err != nil && exitOf(err) != 1 {
		return "", fmt.Errorf("read branch of %s: %w", t.Path, err)
	}
	return name, nil
}

func (t *Tree) snapshot(ctx context.Context) (Snapshot, error) {
	if err := t.repo.begin(ctx); err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	var err error
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
	f, err := t.freeze(ctx, rules{}, "snapshot\n", parents...)
	if err != nil {
		return Snapshot{}, err
	}
	defer f.drop()
	s.Commit, s.Left, s.sparse = f.commit, f.left, f.sparse
	if s.Uncommitted, err = t.repo.count(ctx, s.Head, s.Commit); err != nil {
		return Snapshot{}, err
	}
	return s, t.repo.hold(ctx, t, s)
}

// head is the commit HEAD names, "" before the first one.
func (t *Tree) head(ctx context.Context) (string, error) {
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

// drop removes the index.
func (f *frozen) drop() { _ = os.Remove(f.at.index) }

// freeze commits the tree as it is now, without any ref.
func (t *Tree) freeze(ctx context.Context, r rules, message string, parents ...string) (*frozen, error) {
	index := t.repo.next("index")
	if err := copyIndex(t.index, index); err != nil {
		return nil, fmt.Errorf("copy index: %w", err)
	}
	s, tree, err := t.stage(ctx, index, r)
	if err == nil {
		var id string
		if id, err = t.repo.commit(ctx, tree, message, parents...); err == nil {
			return &frozen{s, tree, id}, nil
		}
	}
	_ = os.Remove(index)
	return nil, err
}

// commit makes a commit that depends on nothing but its tree, message and parents. It
// is dated like its first parent: merge-base walks by date, and from a commit older
// than its parent it would walk the whole history.
func (r *Repo) commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	date := "1000000000"
	args := []string{"commit-tree", tree}
	for i, p := range parents {
		if i == 0 {
			var err error
			if date, err = r.git.line(ctx, r.ours(), "log", "-1", "--no-show-signature", "--format=%ct", p); err != nil {
				return "", err
			}
		}
		args = append(args, "-p", p)
	}
	dated := *r.git
	dated.env = append(dated.env[:len(dated.env):len(dated.env)],
		"GIT_AUTHOR_DATE="+date+" +0000", "GIT_COMMITTER_DATE="+date+" +0000")
	out, err := dated.run(ctx, r.ours(), []byte(message), args...)
	return strings.TrimSpace(string(out)), err
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

// hold makes the snapshot independent of what the user does to their index, branches
// and objects: all of it that HEAD does not hold is packed into our store, and one ref
// of theirs keeps HEAD. That ref stays where the first snapshot of the run put it, and
// later ones are packed against the same commit.
func (r *Repo) hold(ctx context.Context, t *Tree, s Snapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !t.copied {
		if err := r.holdHeadLocked(ctx, s.Head); err != nil {
			return err
		}
		revs := s.Commit + "\n"
		if r.head != "" {
			revs += "^" + r.head + "\n"
		}
		if _, err := r.git.run(ctx, r.ours(), []byte(revs), "pack-objects", "-q", "--revs",
			filepath.Join(r.objects(), "pack", "pack")); err != nil {
			return err
		}
		if _, err := r.git.run(ctx, r.ours(), nil, "prune-packed", "-q"); err != nil {
			return err
		}
	}
	r.bases++
	_, err := r.git.run(ctx, r.ours(), nil, "update-ref", r.id.ref(fmt.Sprintf("base/%d", r.bases)), s.Commit)
	return err
}

// holdHeadLocked puts the run's ref on the commit the user is on, once.
func (r *Repo) holdHeadLocked(ctx context.Context, head string) error {
	if r.head != "" || head == "" || r.store != r.stores()[0] {
		return nil
	}
	ref := r.id.ref("head")
	old, err := r.git.line(ctx, r.tree.at, "rev-parse", "-q", "--verify", ref)
	if err == nil { // from an earlier life of this run
		r.head = old
		return nil
	}
	if exitOf(err) != 1 {
		return err
	}
	_, err = r.git.run(ctx, r.tree.at, nil, "update-ref", ref, head)
	if err == nil {
		r.head = head
	}
	return err
}

// Keep puts a ref on a change, refs/skein/<session>/<run>/kept/<name> in our git
// directory: it outlives the run.
func (r *Repo) Keep(ctx context.Context, ch Change, name string) (string, error) {
	if err := checkName("change", name); err != nil {
		return "", fmt.Errorf("keep change: %w", err)
	}
	ref := r.id.ref("kept/" + name)
	if err := r.begin(ctx); err != nil {
		return "", fmt.Errorf("keep change %s: %w", name, err)
	}
	if _, err := r.git.run(ctx, r.ours(), nil, "update-ref", ref, ch.Commit); err != nil {
		return "", fmt.Errorf("keep change %s: %w", name, err)
	}
	return ref, nil
}

// Diff is the unified diff between two commits.
func (r *Repo) Diff(ctx context.Context, from, to string) (string, error) {
	out, err := r.git.run(ctx, r.ours(), nil, "diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	return string(out), nil
}

// Close ends the run: copies that hold nothing are removed, the work in others is kept
// on a ref first, the run's refs go unless anything is kept. It may be called twice.
func (r *Repo) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.lease == nil {
		r.mu.Unlock()
		return nil
	}
	var left []*Copy
	for _, c := range r.copies {
		left = append(left, c)
	}
	r.mu.Unlock()
	var errs []error
	for _, c := range left {
		_, err := c.reclaim(ctx)
		errs = append(errs, err)
	}
	errs = append(errs, r.end(ctx, r.id))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease.release()
	r.lease, r.head = nil, ""
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close worktrees: %w", err)
	}
	return nil
}

// end removes what a run leaves: its refs unless it keeps something, and its folder
// unless copies or unfinished ledgers are still there. The caller has its lease.
func (r *Repo) end(ctx context.Context, id runID) error {
	refs, err := r.git.line(ctx, r.ours(), "for-each-ref", "--format=%(refname)", id.ref(""))
	if err != nil {
		return err
	}
	names := strings.Fields(refs)
	kept := slices.ContainsFunc(names, func(ref string) bool { return strings.HasPrefix(ref, id.ref("kept/")) })
	folder := filepath.Join(r.store, "runs", id.folder())
	copies := string(readLease(filepath.Join(folder, "lease")).Copies)
	_ = syscall.Rmdir(copies) // fails while copies are there, as it should
	_, err = os.Lstat(copies)
	busy := err == nil
	if !kept && !busy {
		for _, ref := range names {
			if _, err := r.git.run(ctx, r.ours(), nil, "update-ref", "-d", ref); err != nil {
				return err
			}
		}
		if r.stores()[0] == r.store {
			if _, err := r.git.run(ctx, r.tree.at, nil, "update-ref", "-d", id.ref("head")); err != nil {
				return err
			}
		}
	}
	ledgers, err := filepath.Glob(filepath.Join(folder, "apply-*", ledgerName))
	if err != nil || len(ledgers) > 0 || busy {
		return err
	}
	return os.RemoveAll(folder)
}
