package worktree

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Reasons of [Left] for what git says nothing of.
const (
	LeftSpecial = "neither a file nor a link"
	LeftOurs    = "named as what belongs to skein"
	LeftCase    = "differs from another name only in case"
)

// unlock makes all of a copy readable to us, whatever its writer did to permissions: to git
// only the executable bit of files counts.
func (c *Copy) unlock(ctx context.Context) error {
	root := c.tree.at.work
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return nil // git names it
		case at == root+"/.git":
			return skip(d)
		case !d.IsDir() && !d.Type().IsRegular():
			return nil
		}
		need := fs.FileMode(0o400)
		if d.IsDir() {
			need = 0o700 // WalkDir reads the folder after this call
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&need != need {
			_ = os.Chmod(at, info.Mode().Perm()|need) // what stays closed git names
		}
		return nil
	})
}

// skip leaves out what is below a folder.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// strange names what a writer left and git passes over without a word: special files, what
// is named .git or .skein. What is ignored needs no word.
func (s *staging) strange(ctx context.Context) error {
	if s.tree.copy == nil {
		return nil
	}
	root := s.at.work
	found := map[string]string{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := strings.TrimPrefix(at, root+"/")
		base := strings.ToLower(path.Base(name))
		switch {
		case err != nil, at == root:
			return nil
		case name == ".git":
			return skip(d)
		case base == ".git":
			found[name] = LeftName
			return skip(d)
		case base == ".skein":
			if holdsFiles(at) {
				found[name] = LeftOurs
			}
			return skip(d)
		case d.IsDir(), d.Type().IsRegular(), d.Type()&fs.ModeSymlink != 0, strings.HasPrefix(path.Base(name), siblingPrefix):
			return nil
		}
		if info, err := d.Info(); err == nil && !isWhiteout(info) {
			found[name] = LeftSpecial
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range found {
		if s.told(name) {
			delete(found, name)
		}
	}
	if len(found) == 0 {
		return nil
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	var ask []string
	for _, name := range names {
		ask = append(ask, "./"+name) // else one that begins with a colon says more than a name
	}
	out, err := s.git.run(ctx, s.at, list(ask), "check-ignore", "-z", "--stdin")
	if err != nil && exitOf(err) < 0 {
		return err
	}
	ignored := fields(out) // none where git fails: then all are named
	for _, name := range names {
		if !slices.Contains(ignored, "./"+name) {
			s.left = append(s.left, Left{name, found[name]})
		}
	}
	return nil
}

// told reports whether a path, or a folder above it, is named as left out.
func (s *staging) told(name string) bool {
	return slices.ContainsFunc(s.left, func(l Left) bool {
		return name == l.Path || strings.HasPrefix(name, l.Path+"/")
	})
}

// holdsFiles reports whether something other than folders is there, which is no whiteout.
func holdsFiles(at string) bool {
	err := filepath.WalkDir(at, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err != nil || isWhiteout(info) {
			return nil
		}
		return fs.ErrExist
	})
	return err != nil
}

// sameButCase names new files that git does not see, for their names differ from others only in
// case and the configuration says that the file system takes both for the same. Seen are
// those that it does see.
func (s *staging) sameButCase(ctx context.Context, seen []byte) error {
	user, err := s.tree.repo.settings(ctx)
	if err != nil || !user.ignoreCase || s.tree.repo.tree.foldsCase() {
		return err
	}
	at := s.at
	at.config = append(at.config[:len(at.config):len(at.config)], "core.ignoreCase=false")
	out, err := s.git.run(ctx, at, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for name := range s.known {
		known[strings.ToLower(name)] = true
	}
	old := map[string]bool{}
	for _, name := range fields(seen) {
		old[name] = true
	}
	for _, name := range fields(out) {
		if !old[name] && known[strings.ToLower(name)] {
			s.left = append(s.left, Left{name, LeftCase})
		}
	}
	return nil
}

// foldsCase reports whether the file system of the tree takes a for A.
func (t *Tree) foldsCase() bool {
	a, err := os.Lstat(t.file(".git"))
	if err != nil {
		return false
	}
	b, err := os.Lstat(t.file(".GIT"))
	return err == nil && os.SameFile(a, b)
}
