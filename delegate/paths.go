package delegate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a task's paths. Matching a glob takes time that grows with the power of its groups
// of alternatives; so it may have one, and others are written as paths of their own.
const (
	mostGlobs = 100
	globBytes = 400
)

// cleanGlobs checks the paths of a task and gives them as they are matched.
func cleanGlobs(globs []string) ([]string, error) {
	if len(globs) > mostGlobs {
		return nil, fmt.Errorf("there are %d paths, at most %d can be given: name folders", len(globs), mostGlobs)
	}
	var clean []string
	for _, g := range globs {
		c, err := cleanGlob(g)
		if err != nil {
			return nil, err
		}
		clean = append(clean, c)
	}
	return clean, nil
}

// cleanGlob checks a glob of a task's paths and gives it as it is matched. A folder's name
// with a slash behind it means all that is in it.
func cleanGlob(glob string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fmt.Errorf("path %q %s: a path is relative to the workspace, such as storage/** or docs/*.md", oneLine(glob), why)
	}
	switch {
	case strings.TrimSpace(glob) == "":
		return bad("is empty")
	case path.IsAbs(glob):
		return bad("is absolute")
	case slices.Contains(strings.Split(glob, "/"), ".."):
		return bad("has ..")
	case len(glob) > globBytes:
		return bad("is too long")
	case strings.Count(glob, "{") > 1:
		return bad("has more than one {a,b}, which are to be listed as several paths")
	case !doublestar.ValidatePattern(glob):
		return bad("is no valid pattern")
	}
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return path.Clean(glob), nil
}

// Outside lists the files of a change, each once, that the task's paths do not cover. Names are
// relative to the workspace. A path that is a folder's plain name covers what is in it.
func (t Task) Outside(files []string) []string {
	var outside []string
	for _, f := range files {
		covers := func(glob string) bool {
			return doublestar.MatchUnvalidated(glob, f) || strings.HasPrefix(f, glob+"/") || glob == "."
		}
		if len(t.Paths) > 0 && !slices.ContainsFunc(t.Paths, covers) && !slices.Contains(outside, f) {
			outside = append(outside, f)
		}
	}
	return outside
}

// Beyond says that a change has files outside of the task's paths, and names them.
func Beyond(outside []string) string {
	return "it changed files outside its paths: " + list(shown(outside))
}
