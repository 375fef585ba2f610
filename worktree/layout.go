package worktree

import (
	"os"
	"path/filepath"
	"strings"
)

// A LayoutError refuses a folder whose git directory is not where a box would protect
// it, or whose working tree is not where its git directory is. It wraps no
// [ErrUnavailable]: to work in place there would let commands write what git obeys.
type LayoutError struct{ why, hint string }

func (e *LayoutError) Error() string { return e.why }

// Hint says what to do next.
func (e *LayoutError) Hint() string { return e.hint }

// errNoTree refuses a folder of a repository that is not in a working tree.
var errNoTree = &LayoutError{
	"no working tree: a bare repository, or a folder inside a git directory",
	"work in the repository's working tree; of a bare one make a tree with git worktree add, or with git clone",
}

// checkLayout refuses a tree that its git directory merely names as its own
// (core.worktree): all of that could be changed by what is found in the git directory.
// And a git directory in the tree that is not its .git.
func (r *Repo) checkLayout() error {
	t := r.tree
	if !leadsTo(t.Root, t.at.gitDir) {
		return &LayoutError{
			"the working tree " + t.Root + " has no .git that leads to " + t.at.gitDir,
			"the repository's core.worktree names another tree: remove that (git config --unset core.worktree), or work in a clone",
		}
	}
	for _, dir := range []string{t.at.gitDir, r.common} {
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		if within(t.Root, dir) && !within(filepath.Join(t.Root, ".git"), dir) {
			return &LayoutError{
				"the git directory " + dir + " lies in the working tree, and is not its .git",
				"move it to " + filepath.Join(t.Root, ".git") + ", or out of the tree",
			}
		}
	}
	if t.id = r.idOf(t.at.gitDir); t.id == "" {
		return &LayoutError{
			"the git directory " + t.at.gitDir + " is no worktree of " + r.common,
			"its file commondir names another repository: work in a clone, or in a tree made with git worktree add",
		}
	}
	return nil
}

// leadsTo reports whether the .git of a tree is that git directory, or a file that
// names it, as linked worktrees and submodules have it.
func leadsTo(root, gitDir string) bool {
	at := filepath.Join(root, ".git")
	if info, err := os.Stat(at); err == nil && !info.IsDir() {
		text, err := readPlain(at)
		name, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
		if err != nil || !ok {
			return false
		}
		if at = name; !filepath.IsAbs(at) {
			at = filepath.Join(root, at)
		}
	}
	there, err := filepath.EvalSymlinks(at)
	if err != nil {
		return false
	}
	want, err := filepath.EvalSymlinks(gitDir)
	return err == nil && there == want
}
