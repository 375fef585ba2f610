package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// toolsOfHome are shown of the user's home folder, besides caches and what PATH and the
// variables of toolchains name, there or elsewhere.
var toolsOfHome = []string{
	"bin", ".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise", ".local/share/pipx", ".local/pipx", ".local/share/pnpm", ".local/share/fnm",
	"go/bin", "go/pkg", "sdk", ".cargo/bin", ".rustup", ".nvm", ".fnm", ".nodenv", ".volta", ".deno/bin", ".bun/bin", ".bun/install/global",
	".pyenv", ".virtualenvs", "miniconda3", "miniforge3", "anaconda3", ".rbenv", ".rvm", ".gem/ruby", ".sdkman", ".jenv", ".asdf", ".goenv",
	".ghcup", ".cabal/bin", ".cabal/packages", ".cabal/store", ".stack", ".opam", ".juliaup", ".julia/packages", ".julia/compiled", ".julia/artifacts",
	".dotnet", ".nuget/packages", ".pub-cache/hosted", ".pub-cache/bin", ".mix", ".elan", ".cache/ms-playwright", ".cache/puppeteer",
}

// foldersOfTools are variables that name folders of toolchains.
var foldersOfTools = []string{
	"GOROOT", "GOMODCACHE", "RUSTUP_HOME", "JAVA_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "ANDROID_HOME", "KOTLIN_HOME", "NVM_DIR", "VOLTA_HOME", "PNPM_HOME",
	"PYENV_ROOT", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "SDKMAN_DIR",
}

// pathsOfTools are variables that list folders in which toolchains look.
var pathsOfTools = []string{"LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "GEM_PATH"}

// besideBin is what programs of a folder bin find beside it.
var besideBin = []string{"lib", "lib64", "libexec", "share", "include", "pyvenv.cfg"}

// tools lists what toolchains may need, existing or not.
func tools(p Policy) (list []string) {
	homes := homesOf(p.Env)
	for _, home := range homes {
		for _, name := range toolsOfHome {
			list = append(list, filepath.Join(home, name))
		}
	}
	add := func(path string) {
		if filepath.IsAbs(path) {
			list = append(list, filepath.Clean(path))
		}
	}
	for _, name := range foldersOfTools {
		add(lookup(p.Env, name))
	}
	for _, name := range pathsOfTools {
		for _, dir := range filepath.SplitList(lookup(p.Env, name)) {
			add(dir)
		}
	}
	for _, dir := range filepath.SplitList(lookup(p.Env, "GOPATH")) {
		add(filepath.Join(dir, "bin"))
		add(filepath.Join(dir, "pkg"))
	}
	add(modules(p.Env))
	// Beside these lies what programs of every kind keep, and people.
	own := append(slices.Clone(homes), gathering...)
	for _, home := range homes {
		own = append(own, actual(filepath.Join(home, ".local"))) // its tools are in toolsOfHome
	}
	for _, dir := range filepath.SplitList(lookup(p.Env, "PATH")) {
		add(dir)
		parent := actual(filepath.Dir(dir))
		if filepath.Base(dir) != "bin" || slices.Contains(own, parent) || within(p.View, parent) || within(p.Workspace, parent) {
			continue
		}
		for _, name := range besideBin {
			add(filepath.Join(filepath.Dir(dir), name))
		}
		if _, err := os.Stat(filepath.Join(parent, "pkg", "tool")); err == nil {
			add(filepath.Dir(dir)) // Go itself
		}
	}
	return append(list, "/home/linuxbrew/.linuxbrew")
}

// mostText is more than any file that says where a git directory is, or its configuration, has.
const mostText = 1 << 20

// gitDirs lists where the git directory of a linked worktree or a submodule is. What the
// workspace says of it counts only if a git directory outside says the same of the workspace,
// from where git has it: what a workspace holds is a stranger's word, whoever it names.
func gitDirs(p Policy) []string {
	dir := gitDirAt(p.Workspace, gitFile(filepath.Join(p.Workspace, ".git")))
	if dir == "" || within(dir, p.Workspace) {
		return nil // none, or shown already
	}
	if back, ok := readLine(filepath.Join(dir, "gitdir"), ""); ok {
		common := gitDirAt(dir, commonDir(dir))
		if common == "" || filepath.Dir(dir) != filepath.Join(common, "worktrees") || rooted(dir, back) != filepath.Join(p.Workspace, ".git") {
			return nil
		}
		return []string{common}
	}
	if work, ok := readLine(filepath.Join(dir, "config"), "worktree ="); ok && rooted(dir, work) == p.Workspace {
		return []string{dir}
	}
	return nil
}

// readLine returns what follows the prefix in the first line of a file that has it. A command
// of another box may put something else in its place at any moment, such as a pipe: so it is
// opened without waiting, and only then looked at.
func readLine(path, prefix string) (string, bool) {
	f, err := os.OpenFile(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	text, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err != nil || len(text) > mostText {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// rooted resolves a path that is relative to dir; "" if there is nothing.
func rooted(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	found, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return found
}
