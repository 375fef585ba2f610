package worktree

import (
	"os"
	"path/filepath"
)

// glob lists what a folder holds under names of a pattern, in order; nothing where there is no
// folder. Of the folder's own path nothing counts as a pattern, unlike in [filepath.Glob]: it
// holds names that are the user's.
func glob(dir, pattern string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !missing(err) {
		return nil, err
	}
	for _, e := range entries {
		ok, err := filepath.Match(pattern, e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// ledgersOf lists the folders in a run's folder of Applies that are not ended.
func ledgersOf(run string) (dirs []string, err error) {
	applies, err := glob(run, "apply-*")
	for _, dir := range applies {
		if _, err := os.Lstat(filepath.Join(dir, ledgerName)); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}
