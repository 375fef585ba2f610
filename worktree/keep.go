package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// hold keeps a snapshot for as long as the run lives. It depends on nothing that the user
// does to their index, branches and objects: all of it that their HEAD did not hold is in a
// pack of ours, and one ref of theirs keeps that commit.
func (r *Repo) hold(ctx context.Context, commit string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bases++
	_, err := r.git.run(ctx, r.ours(), nil, "update-ref", r.id.ref(fmt.Sprintf("base/%d", r.bases)), commit)
	return err
}

// pack puts into our store all of a commit that others do not hold. Whatever of it git
// found in the user's object store it did not write to ours, and the user may delete it.
// The others are held already: by a pack of ours, or by the run's ref on the user's HEAD.
func (r *Repo) pack(ctx context.Context, commit string, without ...string) error {
	_, err := r.packTo(ctx, r.git, r.ours(), r.packs(), commit, without...)
	return err
}

// packs is what the names of the packs in our store begin with.
func (r *Repo) packs() string { return filepath.Join(r.objects(), "pack", "pack") }

// noSync is configuration for calls whose files need not outlive a crash.
const noSync = "core.fsync=none"

// packTo is pack by a git at some place, to files whose names begin with a path. It gives
// what they are called.
func (r *Repo) packTo(ctx context.Context, g *git, at place, to, commit string, without ...string) (string, error) {
	revs := commit + "\n"
	for _, id := range without {
		if id != "" {
			revs += "^" + id + "\n"
		}
	}
	out, err := g.run(ctx, at, []byte(revs), "pack-objects", "-q", "--revs", to)
	return strings.TrimSpace(string(out)), err
}

// holdHead puts the run's ref on the commit the user is on, once, and gives the commit it
// is on: it stays where the first snapshot of the run put it, and later ones are packed
// against the same commit. "" if there is none, or the user's repository cannot be written.
func (r *Repo) holdHead(ctx context.Context, head string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head != "" || head == "" || r.store != r.stores()[0] {
		return r.head, nil
	}
	ref := r.id.ref("head")
	old, err := r.git.line(ctx, r.tree.at, "rev-parse", "-q", "--verify", ref)
	if err == nil { // from an earlier life of this run
		r.head = old
		return old, nil
	}
	if exitOf(err) != 1 {
		return "", err
	}
	_, err = r.git.run(ctx, r.tree.at.durable(), nil, "update-ref", ref, head)
	if err == nil {
		r.head = head
	}
	return r.head, err
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
