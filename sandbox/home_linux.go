package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skein/sandbox/boxinit"
)

// toolsOfHome are shown of the user's home folder, besides what PATH and the variables of
// toolchains name below it, and caches.
var toolsOfHome = []string{
	"bin", ".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise", ".local/share/pipx", ".local/pipx", ".local/share/pnpm", ".local/share/fnm",
	"go/bin", "go/pkg", "sdk", ".cargo/bin", ".rustup", ".nvm", ".fnm", ".nodenv", ".volta", ".deno/bin", ".bun/bin", ".bun/install/global",
	".pyenv", ".virtualenvs", "miniconda3", "miniforge3", "anaconda3", ".rbenv", ".rvm", ".gem/ruby", ".sdkman", ".jenv", ".asdf", ".goenv",
	".ghcup", ".cabal/bin", ".cabal/packages", ".cabal/store", ".stack", ".opam", ".juliaup", ".julia/packages", ".julia/compiled", ".julia/artifacts",
	".dotnet", ".nuget/packages", ".pub-cache/hosted", ".pub-cache/bin", ".mix", ".elan", ".cache/ms-playwright", ".cache/puppeteer",
}

// foldersOfTools are variables that name folders of toolchains.
var foldersOfTools = []string{
	"GOROOT", "GOMODCACHE", "RUSTUP_HOME", "JAVA_HOME", "M2_HOME", "MAVEN_HOME", "ANDROID_HOME", "KOTLIN_HOME", "NVM_DIR", "VOLTA_HOME", "PNPM_HOME",
	"PYENV_ROOT", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "RBENV_ROOT", "GEM_HOME", "DOTNET_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "SDKMAN_DIR",
}

// besideBin is what programs of a folder bin find beside it.
var besideBin = []string{"lib", "lib64", "libexec", "share", "include"}

// homes hides the folders of all users and shows of this user's what toolchains need. Of
// files below a home nothing is seen but what is named: what a list of secrets forgets, other
// projects and other users' files are gone. A workspace that is or holds the home shows it.
func homes(p Policy, view string) (mounts []boxinit.Mount, links []boxinit.Link) {
	var covered []string
	for _, home := range append(homesOf(p.Env), "/home") {
		if coverable(p, view, home) && !slices.Contains(covered, home) {
			covered = append(covered, home)
			mounts = append(mounts, boxinit.Mount{Kind: boxinit.Tmpfs, Target: boxinit.Raw(home)})
		}
	}
	shown := map[string]bool{}
	for _, path := range tools(p) {
		source, err := filepath.EvalSymlinks(path)
		below := func(root string) bool { return path != root && within(path, root) }
		// A name that leads to a home shows more than tools.
		broad := func(root string) bool { return within(root, source) }
		if err != nil || shown[path] || within(path, view) || !slices.ContainsFunc(covered, below) || slices.ContainsFunc(covered, broad) {
			continue
		}
		shown[path] = true
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.Bind, Source: boxinit.Raw(source), Target: boxinit.Raw(path)})
	}
	for _, home := range userHomes(p.Env) {
		home = filepath.Clean(home)
		if found, err := filepath.EvalSymlinks(home); err == nil && found != home && slices.Contains(covered, filepath.Dir(home)) && !shown[home] {
			shown[home] = true
			links = append(links, boxinit.Link{Path: boxinit.Raw(home), Target: boxinit.Raw(found)})
		}
	}
	return mounts, links
}

// homesOf lists the homes of the user, without symbolic links.
func homesOf(env []string) (list []string) {
	for _, home := range userHomes(env) {
		if found, err := filepath.EvalSymlinks(home); err == nil && filepath.IsAbs(found) {
			list = append(list, found)
		}
	}
	return list
}

// coverable reports whether a home can be hidden: it is no part of the system, nor of what
// the box has of its own or shows by name.
func coverable(p Policy, view, home string) bool {
	info, err := os.Lstat(home)
	if err != nil || !info.IsDir() || within(home, view) {
		return false
	}
	for _, m := range p.ReadOnly {
		at := m.Path
		if at == "" {
			at = m.Host
		}
		if within(home, actual(at)) {
			return false
		}
	}
	top, rest, _ := strings.Cut(home[1:], "/")
	switch top {
	case "", "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "nix", "proc", "run", "sbin", "sys", "tmp", "usr":
		return false
	case "mnt", "opt", "srv", "var":
		return rest != ""
	}
	return true
}

// tools lists what toolchains may need, existing or not.
func tools(p Policy) (list []string) {
	for _, home := range homesOf(p.Env) {
		for _, name := range toolsOfHome {
			list = append(list, filepath.Join(home, name))
		}
	}
	add := func(path string) {
		if filepath.IsAbs(path) {
			// The folder's own name may be a link, which is how programs know it.
			list = append(list, filepath.Join(actual(filepath.Dir(path)), filepath.Base(path)))
		}
	}
	for _, name := range foldersOfTools {
		add(lookup(p.Env, name))
	}
	for _, dir := range filepath.SplitList(lookup(p.Env, "GOPATH")) {
		add(filepath.Join(dir, "bin"))
		add(filepath.Join(dir, "pkg"))
	}
	add(modules(p.Env))
	// Beside these lies what programs of every kind keep; their tools are in toolsOfHome.
	var own []string
	for _, home := range homesOf(p.Env) {
		own = append(own, actual(home), actual(filepath.Join(home, ".local")))
	}
	for _, dir := range filepath.SplitList(lookup(p.Env, "PATH")) {
		add(dir)
		if parent := filepath.Dir(dir); filepath.Base(dir) == "bin" && !slices.Contains(own, actual(parent)) {
			for _, name := range besideBin {
				add(filepath.Join(parent, name))
			}
			if _, err := os.Stat(filepath.Join(parent, "pkg", "tool")); err == nil {
				add(parent) // Go itself
			}
		}
	}
	list = append(list, "/home/linuxbrew/.linuxbrew")
	return append(list, gitDirs(p)...)
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
