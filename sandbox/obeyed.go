package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// closed are names of files and folders, at any depth, that nothing in a box or by a file
// tool changes: what they hold is obeyed outside of boxes by a program that nobody told to.
// Such settings name programs to run, or widen what an agent may do. Text that agents read
// (AGENTS.md) is not among them, nor what a person starts.
var closed = []string{
	".git",
	".skein",
	// Agents.
	".agent", ".agents", ".aider.conf.yml", ".amazonq", ".amp", ".augment", ".claude", ".cline", ".codex", ".continue", ".copilot", ".crush", ".crush.json",
	"crush.json", ".cursor", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kiro", ".mcp.json", ".opencode", "opencode.json",
	"opencode.jsonc", ".pi", ".qwen", ".roo", ".trae", ".windsurf",
	// Editors, which start tasks and servers when a folder is opened.
	".devcontainer", ".devcontainer.json", ".dir-locals.el", ".dir-locals-2.el", ".fleet", ".helix", ".idea", ".vscode", ".zed",
	// Shells, when a folder is entered.
	".envrc", ".mise", ".mise.toml", ".mise.local.toml", "mise.toml", "mise.local.toml",
	// Hooks of git's that lie in the tree.
	".githooks", ".husky", ".lefthook",
}

// closedIn are names that are closed only in a folder of a certain name.
var closedIn = []string{".config/mise", "mise/config.toml"}

// closedOfHome are closed besides, where the workspace is or holds a home of the user's: what
// shells, sessions, git and editors start with.
var closedOfHome = []string{
	".gitconfig", ".config/git", ".config/skein", ".claude.json", ".config/opencode", ".config/crush", ".config/goose", ".config/github-copilot",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc", ".pam_environment",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/fish", ".config/nushell", ".config/direnv", ".config/mise", ".oh-my-zsh",
	".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".config/autostart", ".config/environment.d", ".config/systemd", ".local/share/applications",
	".vimrc", ".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".config/Code", ".config/VSCodium", ".config/Cursor", ".config/zed",
	".tmux.conf", ".config/tmux", ".gdbinit", ".lldbinit", ".cargo/env", ".cargo/config.toml", ".local/bin", "bin",
}

// Closed returns the name in a slash-separated path for which file tools refuse it and no
// command of a box may change it where it exists, "" if there is none. Paths are relative to
// a workspace; those that are closed for the sake of a home are not known here.
func Closed(path string) string {
	folder := ""
	for e := range strings.SplitSeq(path, "/") {
		if isClosed(folder, e) {
			return e
		}
		folder = e
	}
	return ""
}

// Obeyed reports whether [Closed] knows a name in the path.
func Obeyed(path string) bool { return Closed(path) != "" }

// isClosed asks for a name in a folder of that name, "" for one that does not matter.
func isClosed(folder, name string) bool {
	name = strings.ToLower(name)
	return closedNames[name] || closedNames[strings.ToLower(folder)+"/"+name]
}

// closedNames is closed and closedIn for those who ask often.
var closedNames = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range slices.Concat(closed, closedIn) {
		names[name] = true
	}
	return names
}()

// closedPaths lists what is closed for the sake of homes, relative to the workspace.
func (p Policy) closedPaths() (paths []string) {
	for _, home := range userHomes(p.Env) {
		if !filepath.IsAbs(home) {
			continue
		}
		for _, name := range closedOfHome {
			if rel, ok := p.below(filepath.Join(home, name)); ok {
				paths = append(paths, filepath.ToSlash(rel))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// isGitDir reports whether a folder with these names is a git directory, as git sees it: a
// bare repository, one that a .git file names, or that of a linked worktree. A folder called
// .git may be less than that; it counts by its name.
func isGitDir(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// gitDirAround returns the git directory in which a folder lies, or that it is; "" for one in
// a working tree. The path is absolute and without symbolic links.
func gitDirAround(dir string) string {
	for {
		if isGitDir(func(name string) bool { return exists(filepath.Join(dir, name)) }) || strings.EqualFold(filepath.Base(dir), ".git") {
			return dir
		}
		parent := filepath.Dir(dir)
		if exists(filepath.Join(dir, ".git")) || parent == dir {
			return ""
		}
		dir = parent
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// byDepth orders paths: those near the top first.
func byDepth(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
}
