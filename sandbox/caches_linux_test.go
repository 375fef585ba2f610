package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skein/sandbox"
)

// caches of a home, as their tools would find them, and the variable that names each in a box.
var caches = map[string]string{
	".cache/go-build": "GOCACHE", ".cache/golangci-lint": "GOLANGCI_LINT_CACHE", ".npm": "npm_config_cache",
	".local/share/pnpm/store": "npm_config_store_dir", ".cache/yarn": "YARN_CACHE_FOLDER", ".bun/install/cache": "BUN_INSTALL_CACHE_DIR",
	".cache/deno": "DENO_DIR", ".cargo": "CARGO_HOME", ".cache/pip": "PIP_CACHE_DIR", ".cache/uv": "UV_CACHE_DIR",
	".gradle": "GRADLE_USER_HOME", ".m2/repository": "MAVEN_ARGS", ".cache/ccache": "CCACHE_DIR",
}

// bareHome makes a home folder and gives the environment of whoever has it.
func bareHome(t testing.TB) (home string, env []string) {
	t.Helper()
	home = t.TempDir()
	return home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
}

// Every cache of the user's is warm in a box, can be written there, and stays as it is.
func TestCaches(t *testing.T) {
	home, env := bareHome(t)
	for folder := range caches {
		write(t, filepath.Join(home, folder, "sub/warm"), "warm "+folder+"\n")
	}
	// Secrets stand in some of them.
	write(t, filepath.Join(home, ".cargo/credentials.toml"), "planted")
	write(t, filepath.Join(home, ".gradle/gradle.properties"), "planted")
	write(t, filepath.Join(home, ".m2/settings.xml"), "planted")
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: env})
	for folder, variable := range caches {
		script := "c=${" + variable + "#-Dmaven.repo.local=}; cat $c/sub/warm; echo mine > $c/sub/warm; echo x > $c/new; rm -r $c/sub; ls $c"
		if got := must(t, box, script); !strings.HasPrefix(got, "warm "+folder+"\n") || !strings.HasSuffix(got, "\nnew\n") {
			t.Errorf("%s: %q, want what is in %s, and that it can be changed", variable, got, folder)
		}
		if got := read(t, filepath.Join(home, folder, "sub/warm")); got != "warm "+folder+"\n" {
			t.Errorf("%s of the user's holds %q after the box changed it", folder, got)
		}
		if _, err := os.Stat(filepath.Join(home, folder, "new")); err == nil {
			t.Errorf("a file of the box stands in %s of the user's", folder)
		}
	}
	must(t, outside(t, home), "grep -rqs planted .cargo && grep -rqs planted .gradle")
	if out := must(t, box, "grep -rs planted "+home+" $CARGO_HOME $GRADLE_USER_HOME || echo none"); out != "none\n" {
		t.Errorf("secrets in caches are shown:\n%s", out)
	}
	if got := must(t, open(t, sandbox.Policy{Workspace: t.TempDir(), Env: env}), "cat $CARGO_HOME/sub/warm"); got != "warm .cargo\n" {
		t.Errorf("the next box sees %q, want the cache as it was", got)
	}
}

// A command that locks what it finds in caches keeps nobody outside from it.
func TestLocksOfCaches(t *testing.T) {
	needProgram(t, "flock")
	home := shownFolder(t)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	for _, name := range []string{"go/pkg/mod/cache/lock", "go/pkg/mod/cache/download/m/@v/v1.lock", "go/pkg/mod/cache/vcs/x.lock", ".cargo/.package-cache", ".cache/uv/.lock"} {
		write(t, filepath.Join(home, name), "")
	}
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: env})
	for inside, name := range map[string]string{
		"$GOMODCACHE/cache/lock": "go/pkg/mod/cache/lock", "$GOMODCACHE/cache/download/m/@v/v1.lock": "go/pkg/mod/cache/download/m/@v/v1.lock",
		"$GOMODCACHE/cache/vcs/x.lock": "go/pkg/mod/cache/vcs/x.lock", "$CARGO_HOME/.package-cache": ".cargo/.package-cache", "$UV_CACHE_DIR/.lock": ".cache/uv/.lock",
	} {
		p := start(t, box, bash("exec 3<"+inside+" && flock 3 && echo locked && sleep 60"))
		eventually(t, 10*time.Second, "it has the lock of "+inside, func() bool { text, _, _ := p.Output(0); return string(text) == "locked\n" })
		if out, exit := sh(t, outside(t, home), "exec 3<"+name+" && flock -n 3"); exit != 0 {
			t.Errorf("%s is locked outside: exit %d, %s", inside, exit, out)
		}
		if _, exit := sh(t, box, "exec 3<"+inside+" && flock -n 3"); exit == 0 {
			t.Errorf("control: %s is not locked in the box", inside)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Caches that are somewhere else are found by their variables, and those that are not there
// leave none.
func TestCachesByVariable(t *testing.T) {
	home, env := bareHome(t)
	elsewhere := t.TempDir()
	for _, folder := range []string{"c/go-build", "c/deno", "npm", "secret/pip"} {
		write(t, filepath.Join(elsewhere, folder, "warm"), "warm\n")
	}
	link(t, filepath.Join(elsewhere, "npm"), filepath.Join(elsewhere, "soft"))
	env = append(env, "XDG_CACHE_HOME="+elsewhere+"/c", "npm_config_cache="+elsewhere+"/soft", "UV_CACHE_DIR="+elsewhere+"/absent", "PIP_CACHE_DIR="+elsewhere+"/secret/pip", "CARGO_HOME=relative")
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: env, Hidden: []string{filepath.Join(elsewhere, "secret")}})
	if got := must(t, box, "cat $GOCACHE/warm $DENO_DIR/warm $npm_config_cache/warm; echo x > $GOCACHE/x"); got != "warm\nwarm\nwarm\n" {
		t.Errorf("output = %q, want three warm caches", got)
	}
	if got := must(t, box, "echo $UV_CACHE_DIR$PIP_CACHE_DIR$CARGO_HOME$MAVEN_ARGS; ls -A /run/skein/cache"); got != "\nDENO_DIR\nGOCACHE\nnpm_config_cache\n" {
		t.Errorf("variables and folders of caches that are not there, or hidden: %q", got)
	}
	cold := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}})
	must(t, cold, "echo x > $GOCACHE/x") // whoever has none gets one that is as large
}
