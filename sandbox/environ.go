package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// allowed are the variables commands may see: what tells a program its language, terminal
// and place, and where toolchains are.
var allowed = []string{
	"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "SHELL", "PWD",
	"LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "TZ", "CI", "SOURCE_DATE_EPOCH",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOENV", "GOTOOLCHAIN", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"GONOPROXY", "GOOS", "GOARCH", "GOAMD64", "GOARM", "GOEXPERIMENT", "GODEBUG", "GOWORK", "GOMAXPROCS", "GOTMPDIR",
	"CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS",
	"CC", "CXX", "CPP", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS",
	"JAVA_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "ANDROID_HOME", "KOTLIN_HOME",
	"NVM_DIR", "NODE_PATH", "NODE_ENV", "NODE_OPTIONS", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR",
	"PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX",
	"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "PERL5LIB", "DOTNET_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "SDKMAN_DIR",
	"XDG_CACHE_HOME", "GOLANGCI_LINT_CACHE", "npm_config_cache", "npm_config_store_dir", "YARN_CACHE_FOLDER", "BUN_INSTALL_CACHE_DIR",
	"PIP_CACHE_DIR", "UV_CACHE_DIR", "GRADLE_USER_HOME", "CCACHE_DIR",
}

// secretName finds names that look like secrets, secretValue addresses that hold one.
var (
	secretName  = regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`)
	secretValue = regexp.MustCompile(`://[^/\s@]+@`)
)

// Environment keeps of environ what commands may see: an allow-list of variables, and
// none whose name looks like a secret or whose value is an address with a password. It is
// meant for [Policy.Env] and [Bare.Env].
func Environment(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || secretName.MatchString(name) || secretValue.MatchString(value) {
			continue
		}
		if strings.HasPrefix(name, "LC_") || slices.Contains(allowed, name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// lookup is the last value of a variable, which is the one that counts.
func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

// override joins environments: each variable once, with its last value.
func override(envs ...[]string) []string {
	all := slices.Concat(envs...)
	last := make(map[string]int, len(all))
	for i, entry := range all {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = i
	}
	kept := make([]string, 0, len(last))
	for i, entry := range all {
		if name, _, _ := strings.Cut(entry, "="); last[name] == i {
			kept = append(kept, entry)
		}
	}
	return kept
}
