package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// hold makes the snapshot independent of what the user does to their index, branches
// and objects: all of it that HEAD does not hold is packed into our store, and one ref
// of theirs keeps HEAD. That ref stays where the first snapshot of the run put it, and
// later ones are packed against the same commit.
func (r *Repo) hold(ctx context.Context, t *Tree, s Snapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.copy == nil { // else it is in a pack already, without the snapshot that the copy was made of
		if err := r.holdHeadLocked(ctx, s.Head); err != nil {
			return err
		}
		if err := r.pack(ctx, s.Commit, r.head); err != nil {
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

// pack puts into our store all of a commit that others do not hold. Whatever of it git
// found in the user's object store it did not write to ours, and the user may delete it.
// The others are held already: by a pack of ours, or by the run's ref on the user's HEAD.
func (r *Repo) pack(ctx context.Context, commit string, without ...string) error {
	revs := commit + "\n"
	for _, id := range without {
		if id != "" {
			revs += "^" + id + "\n"
		}
	}
	_, err := r.git.run(ctx, r.ours(), []byte(revs), "pack-objects", "-q", "--revs", filepath.Join(r.objects(), "pack", "pack"))
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
	_, err = r.git.run(ctx, r.tree.at.durable(), nil, "update-ref", ref, head)
	if err == nil {
		r.head = head
	}
	return err
}

// shellQuote writes a word for a shell, bare where that is the same.
func shellQuote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return !strings.ContainsRune("/._-@:+,=%", c) && (c > 'z' || !unicode.IsLetter(c) && !unicode.IsDigit(c))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Diff is the unified diff between two commits or trees, for readers: of all files, or of
// these. Of a binary file it says that it differs.
func (r *Repo) Diff(ctx context.Context, from, to string, paths ...string) (string, error) {
	return r.diff(ctx, "-p", from, to, paths...)
}

// Patch is Diff of all files as git apply reads it: binary files are in it, too.
func (r *Repo) Patch(ctx context.Context, from, to string) (string, error) {
	return r.diff(ctx, "--binary", from, to)
}

func (r *Repo) diff(ctx context.Context, how, from, to string, paths ...string) (string, error) {
	args := []string{"--literal-pathspecs", "diff-tree", "-r", how, "-M", "--no-color", "--no-ext-diff", "--no-textconv", from, to, "--"}
	out, err := r.git.run(ctx, r.ours(), nil, append(args, paths...)...)
	if err != nil {
		return "", fmt.Errorf("diff: %w", err)
	}
	return string(out), nil
}
