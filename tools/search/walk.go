// Package search holds the tools that look for files and text: list_files, glob and grep. All
// three go through the workspace by the same walk, so they agree on what is there.
package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"skein/tools"
	"skein/tools/search/ignore"
)

// A walk goes through the files below a folder in the order of their paths, byte by byte. It
// leaves out what .ignore and .gitignore files say (of the folders above, too), and .git and
// .skein always. It does not follow symbolic links, but visits them.
type walk struct {
	ctx    context.Context
	fsys   tools.FS
	visit  func(name string, d fs.DirEntry) error // may return fs.SkipDir and fs.SkipAll
	levels []level                                // from the workspace down to the folder at hand
	closed int                                    // folders that could not be read
}

// A level is one folder's rules. A .ignore file has the last word over any .gitignore.
type level struct {
	dir         string // "" for the workspace, else with a slash at its end
	ignore, git ignore.Rules
}

// below goes through the folder root. What the caller named is visited even if it is ignored.
func (w *walk) below(root string) error {
	parts := strings.Split(root, "/")
	if root == "." {
		parts = nil
	}
	for _, part := range parts {
		if hidden(part) {
			return &tools.Fault{What: tools.Show(root) + ": is not searched", Next: "use bash with git for what the repository itself holds"}
		}
	}
	for i := range parts {
		dir := path.Join(append([]string{"."}, parts[:i]...)...)
		w.levels = append(w.levels, w.rules(dir))
	}
	if err := w.folder(root); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

func hidden(name string) bool { return name == ".git" || name == ".skein" }

func (w *walk) folder(dir string) error {
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.closed++
		return nil
	}
	w.levels = append(w.levels, w.rules(dir))
	defer func() { w.levels = w.levels[:len(w.levels)-1] }()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	for _, d := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, d.Name())
		if hidden(d.Name()) || w.ignored(name, d.IsDir()) {
			continue
		}
		err := w.visit(name, d)
		if err == nil && d.IsDir() {
			err = w.folder(name)
		}
		if err != nil && !errors.Is(err, fs.SkipDir) {
			return err
		}
	}
	return nil
}

// key sorts a folder where the paths of its files belong.
func key(d fs.DirEntry) string {
	if d.IsDir() {
		return d.Name() + "/"
	}
	return d.Name()
}

func (w *walk) rules(dir string) level {
	l := level{ignore: w.parse(path.Join(dir, ".ignore")), git: w.parse(path.Join(dir, ".gitignore"))}
	if dir != "." {
		l.dir = dir + "/"
	}
	return l
}

// parse reads one file of rules; a link is not one, as with git.
func (w *walk) parse(name string) ignore.Rules {
	const most = 1 << 20 // bytes; more is no list of patterns that somebody wrote
	info, err := w.fsys.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ignore.Rules{}
	}
	f, err := w.fsys.Open(name)
	if err != nil {
		return ignore.Rules{}
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ignore.Rules{}
	}
	return ignore.Parse(string(data))
}

// ignored asks the nearest folder first.
func (w *walk) ignored(name string, dir bool) bool {
	for _, rules := range []func(level) ignore.Rules{
		func(l level) ignore.Rules { return l.ignore },
		func(l level) ignore.Rules { return l.git },
	} {
		for _, l := range slices.Backward(w.levels) {
			if ignored, decided := rules(l).Match(strings.TrimPrefix(name, l.dir), dir); decided {
				return ignored
			}
		}
	}
	return false
}
