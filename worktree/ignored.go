package worktree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Ignored reports whether git ignores the folder that the repository was opened at: a
// snapshot has nothing of it, and no change brings anything into it, so that a caller had
// better work in place.
func (r *Repo) Ignored(ctx context.Context) (bool, error) {
	if r.tree.Prefix == "" {
		return false, nil
	}
	_, err := r.git.run(ctx, r.tree.at, nil, "check-ignore", "-q", "--", "./"+strings.TrimSuffix(r.tree.Prefix, "/"))
	if exitOf(err) == 1 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether %s is ignored: %w", r.tree.Path, err)
	}
	return true, nil
}

// forced lists the files that a writer told git to take although they are ignored. That
// stands in its own index: nothing of which is believed but the names. Known are the paths
// in ours, files what is taken anyway.
func (s *staging) forced(ctx context.Context, files []string) ([]string, error) {
	c := s.tree.copy
	if c == nil {
		return nil, nil // its own index is what we began with
	}
	theirs := filepath.Join(c.GitDir, "index")
	if !small(c.GitDir, fs.ModeDir) || !small(theirs, 0) {
		return nil, nil
	}
	at := s.at.with(filepath.Join(s.folder, "theirs"))
	if err := copyIndex(theirs, at.index); missing(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	out, err := s.git.run(ctx, at, nil, "ls-files", "-z")
	if exitOf(err) > 0 {
		return nil, nil // no index, or one of which the writer wrote nothing
	}
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, name := range files {
		taken[name] = true
	}
	var more []string
	for _, name := range fields(out) {
		if s.known[name] || taken[name] || s.told(name) || !safePath(name) || !plainFolders(s.at.work, path.Dir(name)) {
			continue
		}
		info, err := os.Lstat(s.tree.stored(name))
		if err != nil || !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if !s.closed(name) && !s.cameAlong(name) && s.takes(name, true, s.rules.secrets) {
			more = append(more, name)
		}
	}
	return more, nil
}

// small reports whether a file of that type is there that can be read whole.
func small(name string, kind fs.FileMode) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().Type() == kind && (info.IsDir() || info.Size() <= largeUsers)
}
