package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// gitDirs lists where the git directory of a linked worktree or a submodule is. What the
// workspace says of it counts only if the git directory says the same of the workspace.
func gitDirs(p Policy) []string {
	dir, ok := readLine(filepath.Join(p.Workspace, ".git"), "gitdir:")
	if !ok {
		return nil
	}
	if dir = rooted(p.Workspace, dir); dir == "" {
		return nil
	}
	if back, ok := readLine(filepath.Join(dir, "gitdir"), ""); ok {
		common, ok := readLine(filepath.Join(dir, "commondir"), "")
		if !ok || rooted(dir, back) != filepath.Join(p.Workspace, ".git") {
			return nil
		}
		return []string{rooted(dir, common)}
	}
	if work, ok := readLine(filepath.Join(dir, "config"), "worktree ="); ok && rooted(dir, work) == p.Workspace {
		return []string{dir}
	}
	return nil
}

// readLine returns what follows the prefix in the first line of a file that has it.
func readLine(path, prefix string) (string, bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return "", false
	}
	text, err := os.ReadFile(path)
	if err != nil {
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
