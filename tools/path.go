package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// Name returns the name in FS of a path as the model wrote it: relative to the workspace, or
// absolute and below it. It looks at the text only; links are for FS to follow or refuse.
func (ws Workspace) Name(p string) (string, error) {
	if p == "" {
		return "", &Fault{What: "the path is empty", Next: `use a path relative to the workspace, "." for the workspace itself`}
	}
	name := path.Clean(p)
	if path.IsAbs(name) {
		rest, ok := below(ws.Path, name)
		if !ok && ws.Alias != "" {
			rest, ok = below(ws.Alias, name)
		}
		if !ok {
			return "", ws.outside(p)
		}
		name = rest
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", ws.outside(p)
	}
	return name, nil
}

// below gives the name of a clean absolute path relative to a folder, if it is in there.
func below(dir, p string) (string, bool) {
	dir = path.Clean(dir)
	if p == dir {
		return ".", true
	}
	return strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func (ws Workspace) outside(p string) error {
	return &Fault{
		What: Show(p) + ": outside the workspace " + ws.Path,
		Next: "only files below the workspace can be reached; use a path relative to it",
	}
}

// Show returns a path as it is written into results: quoted where a stranger's file name
// could pass for something else, such as a line of ours.
func Show(name string) string {
	for _, r := range name {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return strconv.QuoteToGraphic(name)
		}
	}
	return name
}

// missing says that there is no such file, and which ones there are that were perhaps meant.
func (ws Workspace) missing(ctx context.Context, name string) error {
	next := "see list_files or glob for what there is"
	if near := ws.near(ctx, name); len(near) > 0 {
		for i, n := range near {
			near[i] = Show(n)
		}
		next = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return &Fault{What: fmt.Sprintf("%s: no such file", Show(name)), Next: next, Cause: fs.ErrNotExist}
}

// near returns up to three files that a wrong path may have meant: those of the same name
// elsewhere, else those with a similar name in the same folder.
func (ws Workspace) near(ctx context.Context, name string) []string {
	const entries, most = 5000, 3 // enough for a hint; a search is what glob is for
	var same, siblings []string
	n := 0
	_ = fs.WalkDir(ws.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if n++; n > entries || ctx.Err() != nil {
			return fs.SkipAll
		}
		switch {
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil
		case d.IsDir():
			if d.Name() == ".git" || d.Name() == ".skein" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Base(p) == path.Base(name) && len(same) < most {
			same = append(same, p)
		}
		if path.Dir(p) == path.Dir(name) {
			siblings = append(siblings, p)
		}
		return nil
	})
	if len(same) > 0 {
		return same
	}
	return Nearest(name, siblings, most)
}

// Nearest returns at most n of the names that differ from name by little more than a slip of
// the finger, best first.
func Nearest(name string, names []string, n int) []string {
	allowed := max(1, len(path.Base(name))/3)
	best := make([][]string, allowed+1)
	for _, c := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(c), allowed); d <= allowed {
			best[d] = append(best[d], c)
		}
	}
	var near []string
	for _, group := range best {
		near = append(near, group...)
	}
	return near[:min(n, len(near))]
}

// distance is the number of characters to put in, take out or replace to get from a to b;
// anything above limit may be returned for more than limit.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(y)]
}

// absent reports whether err means that there is no such file. A file that stands where a
// folder is wanted leaves nothing below it either.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
