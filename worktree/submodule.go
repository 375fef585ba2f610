package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Submodules that the user has checked out come along into copies: the files of the commit
// that the snapshot names, by a git directory of ours that borrows the objects which are
// there. Nothing that their git directories configure counts, and nothing is fetched.

// A submodule is one whose files a copy of a snapshot gets.
type submodule struct {
	path, commit string
	objects      string // folder with its objects
}

// lookForSubmodules finds out which submodules come along with a snapshot, nested ones behind those
// they lie in. It corrects what is named as left out.
func (t *Tree) lookForSubmodules(ctx context.Context, s *Snapshot) error {
	isSub := func(l Left) bool { return l.Reason == LeftSubmodule }
	if !slices.ContainsFunc(s.Left, isSub) {
		return nil
	}
	if c := t.copy; c != nil {
		s.submodules, s.Left = c.Base.submodules, c.judge(s.Left)
		return nil
	}
	ids, err := gitlinks(ctx, t.repo.git, t.repo.ours(), s.Commit)
	if err != nil {
		return err
	}
	user, err := t.repo.settings(ctx)
	if err != nil {
		return err
	}
	var left []Left
	for _, l := range s.Left {
		if !isSub(l) {
			left = append(left, l)
			continue
		}
		more, err := t.lookInto(ctx, user, s, submodule{path: l.Path, commit: ids[l.Path]})
		if err != nil {
			return err
		}
		left = append(left, more...)
	}
	s.Left = left
	return nil
}

// lookInto adds a submodule, and those in it, to what comes along with a snapshot. It names
// what does not.
func (t *Tree) lookInto(ctx context.Context, user settings, s *Snapshot, m submodule) ([]Left, error) {
	absent := []Left{{m.path, LeftSubmodule}}
	dir := t.file(m.path)
	git := t.repo.moduleDir(dir)
	if git == "" || m.commit == "" {
		return absent, nil
	}
	m.objects = filepath.Join(git, "objects")
	own := t.repo.next("submodule")
	at, err := t.repo.moduleAt(own, m, user, dir)
	defer func() { _ = os.RemoveAll(own) }()
	if err != nil {
		return nil, err
	}
	_, err = t.repo.git.run(ctx, at, nil, "rev-list", "--objects", "--no-walk", "--quiet", m.commit)
	var inner map[string]string
	if err == nil {
		inner, err = gitlinks(ctx, t.repo.git, at, m.commit)
	}
	switch {
	case exitOf(err) > 0:
		return absent, nil // not all of it is here
	case err != nil:
		return nil, err
	}
	s.submodules = append(s.submodules, m)
	var left []Left
	if changed, err := t.repo.moduleChanged(ctx, at, git, m.commit); err != nil {
		return nil, err
	} else if changed {
		left = append(left, Left{m.path, LeftUncommitted})
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		commit := inner[name]
		if name = m.path + "/" + name; t.populated(name) {
			more, err := t.lookInto(ctx, user, s, submodule{path: name, commit: commit})
			if err != nil {
				return nil, err
			}
			left = append(left, more...)
		}
	}
	return left, nil
}

// gitlinks lists the submodules in a commit with their commits.
func gitlinks(ctx context.Context, g *git, at place, commit string) (map[string]string, error) {
	out, err := g.run(ctx, at, nil, "ls-tree", "-r", "-z", commit)
	links := map[string]string{}
	for _, entry := range fields(out) {
		info, name, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(info); len(f) == 3 && f[0] == "160000" {
			links[name] = f[2]
		}
	}
	return links, err
}

// moduleDir is the git directory of the submodule that is checked out in a folder; "" if it
// is not where git puts one.
func (r *Repo) moduleDir(dir string) string {
	at := filepath.Join(dir, ".git")
	info, err := os.Lstat(at)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return at
	}
	text, err := readPlain(at)
	name, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	name, err = filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	for _, home := range []string{r.common, r.tree.at.gitDir} {
		if home, err = filepath.EvalSymlinks(home); err == nil && within(filepath.Join(home, "modules"), name) {
			return name
		}
	}
	return ""
}

// moduleAt makes a git directory of ours for a submodule whose files are in a folder.
func (r *Repo) moduleAt(own string, m submodule, user settings, work string) (place, error) {
	err := makeGitDir(own, map[string]string{
		"HEAD": m.commit + "\n", "config": user.text(r.format), "objects/info/alternates": quoteAlternate(m.objects) + "\n",
	})
	return place{dir: work, gitDir: own, work: work, index: filepath.Join(own, "index")}, err
}

// moduleChanged reports whether the folder of a submodule holds anything else than its
// commit, or nobody can tell. Git is its git directory.
func (r *Repo) moduleChanged(ctx context.Context, at place, git, commit string) (bool, error) {
	if exclude, err := readPlain(filepath.Join(git, "info", "exclude")); err == nil {
		_ = os.WriteFile(filepath.Join(at.gitDir, "info", "exclude"), exclude, 0o600) // else more counts as changed
	}
	if copyIndex(filepath.Join(git, "index"), at.index) != nil {
		return true, nil
	}
	for _, ask := range [][]string{
		{"update-index", "-q", "--really-refresh"},
		{"diff-index", "-z", "--name-only", "--ignore-submodules=all", commit},
		{"ls-files", "-z", "--others", "--exclude-standard"},
	} {
		out, err := r.git.run(ctx, at, nil, ask...)
		if ctx.Err() != nil {
			return false, err
		}
		if err != nil || len(out) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// bringSubmodules checks out the submodules that come along.
func (c *Copy) bringSubmodules(ctx context.Context, user settings) error {
	if len(c.Base.submodules) == 0 {
		return nil
	}
	for _, m := range c.Base.submodules {
		if err := c.bringSubmodule(ctx, user, m); err != nil {
			return fmt.Errorf("submodule %s: %w", m.path, err)
		}
	}
	sums := map[string]string{}
	for _, m := range c.Base.submodules {
		if inSubmodule(sums, m.path) {
			continue // the one it lies in counts
		}
		sum, err := digest(c.tree.stored(m.path))
		if err != nil {
			return err
		}
		sums[m.path] = sum
	}
	text, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.folder, copySubs), text, 0o600)
}

// inSubmodule reports whether a path lies in one of these submodules.
func inSubmodule(sums map[string]string, path string) bool {
	for name := range sums {
		if within(name, path) {
			return true
		}
	}
	return false
}

func (c *Copy) bringSubmodule(ctx context.Context, user settings, m submodule) error {
	dir, own := c.tree.stored(m.path), filepath.Join(c.folder, "submodule")
	if !plainFolders(c.Root, m.path) {
		return errors.New("a link leads to it")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as git makes them
		return err
	}
	at, err := c.repo.moduleAt(own, m, user, dir)
	if err == nil {
		_, err = c.repo.git.run(ctx, at, nil, "read-tree", m.commit)
	}
	if err == nil {
		_, err = c.repo.git.run(ctx, at, nil, "checkout-index", "-a", "-q")
	}
	return errors.Join(err, os.RemoveAll(own))
}

// judge corrects what is named as left out of a copy: a submodule that came along counts if
// its files were changed, and only then.
func (c *Copy) judge(left []Left) []Left {
	var sums map[string]string
	text, err := os.ReadFile(filepath.Join(c.folder, copySubs))
	if err != nil || json.Unmarshal(text, &sums) != nil {
		return left
	}
	kept := slices.DeleteFunc(slices.Clone(left), func(l Left) bool { return l.Reason == LeftSubmodule && sums[l.Path] != "" })
	for path, sum := range sums {
		dir := c.tree.stored(path)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue // the submodule itself is gone, or replaced
		}
		if now, err := digest(dir); err != nil || now != sum {
			kept = append(kept, Left{path, LeftSubmodule})
		}
	}
	slices.SortFunc(kept, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	return kept
}

// digest sums up all that lies in a folder. It opens nothing but plain files.
func digest(dir string) (string, error) {
	all := sha256.New()
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(all, "%q %v\n", strings.TrimPrefix(at, dir), info.Mode().Type()|info.Mode()&0o100)
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			to, err := os.Readlink(at)
			_, _ = fmt.Fprintf(all, "%q\n", to)
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		f, err := plain(at)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		one := sha256.New()
		_, err = io.Copy(one, f)
		all.Write(one.Sum(nil))
		return err
	})
	return hex.EncodeToString(all.Sum(nil)), err
}
