package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skein/sandbox/boxinit"
)

// A cache is a folder that a toolchain keeps between builds, below the user's home.
type cache struct {
	variable string // tells the tool another folder
	folder   string // where it is without that, relative to the home
	form     string // what stands before the folder in the variable
}

// caches are shown with a throw-away layer each: builds are as warm as the user's own, and
// change nothing of his. The first folder that exists counts. Java knows the home folder from
// the user database, so that its tools have to be told.
var caches = []cache{
	{"GOCACHE", ".cache/go-build", ""},
	{"GOLANGCI_LINT_CACHE", ".cache/golangci-lint", ""},
	{"npm_config_cache", ".npm", ""},
	{"npm_config_store_dir", ".local/share/pnpm/store", ""},
	{"YARN_CACHE_FOLDER", ".cache/yarn", ""},
	{"BUN_INSTALL_CACHE_DIR", ".bun/install/cache", ""},
	{"DENO_DIR", ".cache/deno", ""},
	{"CARGO_HOME", ".cargo", ""},
	{"PIP_CACHE_DIR", ".cache/pip", ""},
	{"UV_CACHE_DIR", ".cache/uv", ""},
	{"GRADLE_USER_HOME", ".gradle", ""},
	{"MAVEN_ARGS", ".m2/repository", "-Dmaven.repo.local="},
	{"CCACHE_DIR", ".ccache", ""},
	{"CCACHE_DIR", ".cache/ccache", ""},
}

// find is the user's folder, "" where there is none.
func (c cache) find(env []string) string {
	path := lookup(env, c.variable)
	if !filepath.IsAbs(path) {
		path = filepath.Join(lookup(env, "HOME"), c.folder)
		if below, ok := strings.CutPrefix(c.folder, ".cache/"); ok && lookup(env, "XDG_CACHE_HOME") != "" {
			path = filepath.Join(lookup(env, "XDG_CACHE_HOME"), below)
		}
	}
	if !filepath.IsAbs(path) {
		return "" // no home to look in
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	found, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(found); err != nil || !info.IsDir() {
		return ""
	}
	return found
}

// place is where the cache is in a box.
func (c cache) place() string { return filepath.Join(boxinit.Caches, c.variable) }

// cached shows the caches that there are, without what is hidden in them, and returns the
// variables that tell tools of them. What the variables said before is of no use in a box.
func cached(p Policy, secrets []string, r room, add func(boxinit.Mount)) (env []string) {
	hidden := slices.Concat(p.Hidden, secrets)
	told := map[string]bool{}
	for _, c := range caches {
		source := c.find(p.Env)
		// Nobody hides a folder and means its copy to be seen.
		if told[c.variable] || source == "" || slices.ContainsFunc(hidden, func(h string) bool { return within(source, h) }) {
			continue
		}
		told[c.variable] = true
		place := c.place()
		add(boxinit.Mount{Kind: boxinit.Overlay, Source: source, Target: place, Writable: true, Mine: true, Optional: true})
		for _, path := range hidden {
			if rel, ok := strings.CutPrefix(path, source+"/"); ok {
				add(boxinit.Mount{Kind: boxinit.Hide, Target: filepath.Join(place, rel)})
			}
		}
		env = append(env, c.variable+"="+c.form+place)
	}
	// The go command notes in its module cache what it finds of versions, the workspace's own
	// as well: it complains of a folder that it may not write. It locks files there, and a lock of
	// what is only shown would hold up the user's.
	if notes, err := filepath.EvalSymlinks(filepath.Join(modules(p.Env), "cache")); err == nil && filepath.IsAbs(notes) &&
		!slices.ContainsFunc(hidden, func(h string) bool { return within(notes, h) }) {
		add(boxinit.Mount{Kind: boxinit.Overlay, Source: notes, Target: notes, Writable: true, Mine: true, Optional: true})
	}
	if goCache := caches[0]; !told[goCache.variable] { // too large for the private home
		add(boxinit.Mount{Kind: boxinit.Tmpfs, Target: goCache.place(), Writable: true, Mine: true, Size: r.layers})
		env = append(env, goCache.variable+"="+goCache.place())
	}
	return env
}

// withoutCaches leaves out the variables of caches: what they name cannot be written in a box.
func withoutCaches(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(caches, func(c cache) bool { return c.variable == name })
	})
}
