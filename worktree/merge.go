package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Merge merges a change three-way onto a commit, in memory. Onto is the change's base,
// or what an earlier Merge made of it; both are of this run. The same input gives the same
// commit. What does not merge is a [ConflictError].
//
// It lasts as long as the run: after a crash the change that was merged is still there.
func (r *Repo) Merge(ctx context.Context, onto string, ch Change) (string, error) {
	if ch.Empty {
		return onto, nil
	}
	id, err := r.merge(ctx, onto, ch)
	if err != nil {
		return "", fmt.Errorf("merge: %w", err)
	}
	return id, nil
}

func (r *Repo) merge(ctx context.Context, onto string, ch Change) (id string, err error) {
	changes := ch.changes
	if changes == nil {
		if changes, err = r.changes(ctx, ch.Base, ch.Commit); err != nil {
			return "", err
		}
	}
	before, ok, err := r.since(ctx, ch.Base, onto)
	if err != nil {
		return "", err
	}
	if !ok || !apart(before, changes) {
		if id, err = r.mergeByGit(ctx, onto, ch); err == nil {
			r.steps.Store(id, step{onto: onto})
		}
		return id, err
	}
	tree, objects, err := r.graft(ctx, onto, changes)
	if err != nil {
		return "", err
	}
	commit, err := r.commitObject(ctx, tree.id, mergeMessage, onto, ch.Commit)
	if err == nil {
		err = r.writePack(append(objects, commit))
	}
	if err == nil {
		err = r.checkCase(ctx, onto, tree.id)
	}
	if err != nil {
		return "", err
	}
	r.steps.Store(commit.id, step{onto, changes})
	return commit.id, nil
}

const mergeMessage = "merge\n"

// mergeByGit merges what is not [apart].
func (r *Repo) mergeByGit(ctx context.Context, onto string, ch Change) (string, error) {
	by := labels{"the-changes-before-it", "the-change"}
	if ch.Name != "" {
		by.theirs = ch.Name
	}
	tree, err := r.mergeTree(ctx, ch.Base, onto, ch.Commit, by)
	if err != nil {
		return "", err
	}
	id, err := r.commit(ctx, tree, mergeMessage, onto, ch.Commit)
	if err != nil {
		return "", err
	}
	// Before 2.44 git takes a tree that is missing for an empty one, and what a merge makes
	// may have been in the user's store only. It need not outlive a crash.
	at := r.ours()
	at.config = []string{noSync}
	_, err = r.packTo(ctx, r.git, at, r.packs(), id, onto, ch.Commit)
	return id, err
}

// mergeTree is the tree of two merged commits, or a [ConflictError]. Base is the commit
// that both come from.
func (r *Repo) mergeTree(ctx context.Context, base, ours, theirs string, by labels) (string, error) {
	desk, err := r.mergeDesk(ctx, ours, theirs, by)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(desk.gitDir) }()
	out, err := r.git.run(ctx, desk, nil, "merge-tree", "--write-tree", "-z", "--messages", by.ours, by.theirs)
	switch {
	case exitOf(err) == 1:
		return "", r.explain(ctx, string(out), base, ours, theirs, by)
	case err != nil:
		return "", err
	}
	tree, _, _ := strings.Cut(string(out), "\x00")
	return tree, r.checkCase(ctx, ours, tree)
}

// mergeDesk is a git directory for one merge. Git takes the names that it writes to markers
// and messages from its arguments: both sides are branches there. And how a file is merged it
// finds in attributes, which it reads from a working tree only: there is one with nothing else.
func (r *Repo) mergeDesk(ctx context.Context, ours, theirs string, by labels) (place, error) {
	user, err := r.settings(ctx)
	if err != nil {
		return place{}, err
	}
	dir := r.next("merge")
	at := place{dir: dir, gitDir: dir, objects: r.objects()}
	_, attributes := user.rules()
	lists := filepath.Join(dir, "info", "user-attributes")
	err = makeGitDir(dir, map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  coreConfig(r.format, "bare = true", "attributesFile = "+quoteConfig(lists)),
		"packed-refs":             ours + " refs/heads/" + by.ours + "\n" + theirs + " refs/heads/" + by.theirs + "\n",
		"objects/info/alternates": quoteAlternate(r.objects()) + "\n",
		"shallow":                 r.text("shallow"),
		"info/user-attributes":    attributes,
		// Markers are as long as those who look for them expect.
		"info/attributes": r.text("info/attributes") + "\n* !conflict-marker-size\n",
	})
	if err == nil {
		work := filepath.Join(dir, "tree")
		var found bool
		if found, err = r.layAttributes(ctx, work, ours, theirs); found {
			at.dir, at.work = work, work
		}
	}
	if err != nil {
		return place{}, errors.Join(err, os.RemoveAll(dir))
	}
	return at, nil
}

// mostAttributes bounds the attribute files of one merge, in bytes. A writer may have made them.
const mostAttributes = 16 << 20

// layAttributes writes to a folder the attribute files of one side of a merge that decide about
// what git may have to merge: files in which the sides differ. It reports whether there are any.
func (r *Repo) layAttributes(ctx context.Context, work, ours, theirs string) (found bool, err error) {
	changes, err := r.changes(ctx, ours, theirs)
	if err != nil {
		return false, err
	}
	names := foldersOf(changes)
	for i, dir := range names {
		names[i] = path.Join(dir, ".gitattributes")
	}
	var there []string
	total := 0
	err = r.askObjects(ctx, "--batch-check", ours, names, func(name, kind string, size int, rest []byte) ([]byte, error) {
		if kind == "blob" {
			there = append(there, name)
			total += size
		}
		return rest, nil
	})
	if err == nil && total > mostAttributes {
		err = fmt.Errorf("attribute files of %d bytes, more than %d", total, mostAttributes)
	}
	if err != nil {
		return false, err
	}
	files, err := r.readObjects(ctx, ours, "blob", there)
	if err != nil {
		return false, err
	}
	for name, text := range files {
		if !filepath.IsLocal(name) {
			continue
		}
		file := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
			return false, err
		}
	}
	return len(files) > 0, nil
}

// checkCase finds names that a merge brought together and that the user's file system
// does not tell apart: the one would replace the other.
func (r *Repo) checkCase(ctx context.Context, ours, tree string) error {
	user, err := r.settings(ctx)
	if err != nil || !user.ignoreCase {
		return err
	}
	changes, err := r.changes(ctx, ours, tree)
	if err != nil {
		return err
	}
	fresh := map[string]bool{}
	for _, c := range changes {
		if c.old == absent {
			fresh[strings.ToLower(c.path)] = true
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	out, err := r.git.run(ctx, r.ours(), nil, "ls-tree", "-r", "-z", "--name-only", tree)
	if err != nil {
		return err
	}
	names := map[string][]string{}
	for _, name := range fields(out) {
		if low := strings.ToLower(name); fresh[low] {
			names[low] = append(names[low], name)
		}
	}
	var found []Conflict
	for _, same := range names {
		if len(same) < 2 {
			continue
		}
		slices.Sort(same)
		for _, name := range same {
			found = append(found, Conflict{Path: name, Kind: KindCase})
		}
	}
	return conflict(found)
}
