package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Applied says what Apply changed in the tree.
type Applied struct {
	Files []FileStat
}

// ErrHalfApplied is wrapped by the errors of [Tree.Apply] that leave, or find, a tree in
// which a part of a change stands, since it could not be rolled back. The tree is not fit
// for work until that was done: every Apply, and [Repo.Recover], tries it again. Such an
// error wraps no [ConflictError].
var ErrHalfApplied = errors.New("a change stands half applied")

// Apply brings a merged commit into the tree, all of it or nothing. Base is the commit
// the tree was last brought to: its snapshot, or what was applied after that. The merge
// is made against the tree as it is now, so what the user edited since base is kept. A
// [ConflictError] or another error means that the tree is as it was before, save one that
// wraps [ErrHalfApplied]. The index is not touched: what was staged stays so, new files
// are untracked. What was done to the user's tree is recorded, so that it can be shown,
// see [Repo.RunDiff], and undone.
func (t *Tree) Apply(ctx context.Context, base, merged string) (Applied, error) {
	ctx, done := t.guard(ctx)
	defer done()
	a, err := t.apply(ctx, base, merged, nil, t.repo.id)
	if err != nil {
		return Applied{}, fmt.Errorf("apply to %s: %w", t.Path, err)
	}
	return a, nil
}

// ApplyTo is [Tree.Apply] of a merge of what was last collected. The copy counts as merged
// in the step in which the tree does: killed at any time, a change that stands in the tree
// is not kept, and one that does not stand there is.
func (c *Copy) ApplyTo(ctx context.Context, t *Tree, base, merged string) (Applied, error) {
	ctx, done := t.guard(ctx)
	defer done()
	a, err := t.apply(ctx, base, merged, c, t.repo.id)
	if err != nil {
		return Applied{}, fmt.Errorf("apply %s to %s: %w", c.Name, t.Path, err)
	}
	return a, nil
}

// apply is Apply in the name of a run, of the change of a copy if that is not nil.
func (t *Tree) apply(ctx context.Context, base, merged string, of *Copy, who runID) (_ Applied, err error) {
	r := t.repo
	if err := r.begin(ctx); err != nil {
		return Applied{}, err
	}
	if t.copy != nil && t.copy.layered && !t.copy.attached {
		return Applied{}, errors.New("its layers are not shown as one tree: no box is open")
	}
	// One at a time among all runs in this repository.
	guard, err := waitLock(ctx, filepath.Join(r.store, "lock"), r.lockTime)
	if err != nil {
		return Applied{}, err
	}
	defer guard.release()
	if err := r.clearLedgers(ctx, t); err != nil {
		return Applied{}, err
	}

	now, err := t.freeze(ctx, rules{}, "snapshot\n", base, base)
	if err != nil {
		return Applied{}, err
	}
	defer func() { err = errors.Join(err, now.close()) }()
	tree, err := r.onto(ctx, base, now.commit, merged)
	if err != nil {
		return Applied{}, err
	}
	changes, err := r.changes(ctx, now.commit, tree)
	if err == nil && len(changes) == 0 && of != nil {
		err = markDone(of.folder)
	}
	if err != nil || len(changes) == 0 {
		return Applied{}, err
	}
	files, err := r.Files(ctx, now.commit, tree)
	if err != nil {
		return Applied{}, err
	}
	l, err := t.prepare(ctx, now, tree, changes, of, who)
	if err != nil {
		return Applied{}, err
	}
	if err := r.record(ctx, l, changes); err != nil {
		r.forget(ctx, l.Record) // what failed may have come after its ref
		_, back := l.rollBack() // of nothing
		return Applied{}, errors.Join(fmt.Errorf("record it: %w", err), back)
	}
	if err = l.carryOut(ctx); err != nil && !errors.Is(err, ErrHalfApplied) {
		r.forget(ctx, l.Record)
	}
	return Applied{Files: files}, err
}

// onto is the tree of a merge with the files as they are now. Most of the time nobody edited
// them since base: then there is nothing to merge.
func (r *Repo) onto(ctx context.Context, base, now, merged string) (string, error) {
	edits, err := r.changes(ctx, base, now)
	switch {
	case err != nil:
		return "", err
	case len(edits) == 0:
		return merged, r.checkCase(ctx, now, merged)
	default:
		return r.mergeTree(ctx, base, now, merged, labels{"the-tree-as-it-is", "the-change"})
	}
}

// A change is one path that differs between the tree as it is and as it shall be.
type change struct {
	path         string
	old, new     string // modes, "000000" where absent
	oldID, newID string
}

func (c change) before() (mode, id string) { return c.old, c.oldID }
func (c change) after() (mode, id string)  { return c.new, c.newID }

const absent = "000000"

// changes lists what turns one commit's files into those of a tree.
func (r *Repo) changes(ctx context.Context, from, to string) ([]change, error) {
	out, err := r.git.run(ctx, r.ours(), nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", from, to)
	if err != nil {
		return nil, err
	}
	var list []change
	for pair := range slices.Chunk(fields(out), 2) {
		info := strings.Fields(strings.TrimPrefix(pair[0], ":"))
		if len(pair) < 2 || len(info) != 5 {
			return nil, fmt.Errorf("git diff-tree: odd answer %q", pair)
		}
		list = append(list, change{pair[1], info[0], info[1], info[2], info[3]})
	}
	return list, nil
}

// prepare checks all that can be checked before the first change and makes the ledger,
// with the new files staged and the old ones kept beside it, durable.
func (t *Tree) prepare(ctx context.Context, now *frozen, tree string, changes []change, of *Copy, who runID) (*ledger, error) {
	l := &ledger{Tree: bytePath(t.name()), Root: bytePath(t.Root), Keep: bytePath(t.Prefix), dir: t.repo.next("apply"), fault: t.repo.git.point}
	if t.copy == nil {
		l.Record = who.ref(recordKind + fmt.Sprint(time.Now().UnixNano()))
	}
	if of != nil {
		l.Of, l.copy = of.Name, of.folder
	}
	if err := t.plan(l, now, changes); err != nil {
		return nil, err
	}
	// The files read just now must be those that were merged.
	out, err := now.git.run(ctx, now.at, nil, "diff-files", "-z", "--name-only", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	var found []Conflict
	for _, name := range fields(out) {
		if slices.ContainsFunc(changes, func(c change) bool { return c.path == name }) {
			found = append(found, Conflict{Path: name, Kind: KindMeanwhile})
		}
	}
	if err := conflict(found); err != nil {
		return nil, err
	}
	err = t.stageNew(ctx, l, tree)
	if err == nil {
		err = l.write()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(l.dir))
	}
	return l, nil
}

// stageNew has git write the new files, with the line ends and filters of this
// repository, and notes what they are.
func (t *Tree) stageNew(ctx context.Context, l *ledger, tree string) error {
	var files []string
	for _, e := range l.Entries {
		if e.mode != absent {
			files = append(files, string(e.Path))
		}
	}
	fresh := filepath.Join(l.dir, ledgerNew)
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
	}
	at := t.at.with(t.repo.next("index"))
	at.dir, at.work, at.objects = fresh, fresh, t.repo.objects()
	defer func() { _ = os.Remove(at.index) }()
	if _, err := t.repo.git.run(ctx, at, nil, "read-tree", tree); err != nil {
		return err
	}
	if _, err := t.repo.git.run(ctx, at, list(files), "checkout-index", "-q", "-z", "--stdin"); err != nil {
		return err
	}
	for _, e := range l.Entries {
		if e.mode == absent {
			continue
		}
		file := filepath.Join(fresh, string(e.Path))
		if err := e.adopt(t.file(string(e.Path)), file); err != nil {
			return err
		}
		var err error
		if e.New, err = look(file); err != nil {
			return err
		}
		if e.New.Type == "" {
			return fmt.Errorf("git checkout-index: did not write %s", e.Path)
		}
	}
	return nil
}
