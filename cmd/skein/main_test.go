package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skein/sandbox"
	"skein/sandbox/sandboxtest"
)

// TestMain lets the test binary be skein itself, which scripts run as a process of its own, and
// the init of its boxes.
func TestMain(m *testing.M) {
	if sandbox.IsInit() {
		sandbox.Main()
		return
	}
	testscript.Main(m, map[string]func(){"skein": main, "without-landlock": withoutLandlock})
}

// withoutLandlock is a program that runs another one on a kernel that has no Landlock.
func withoutLandlock() {
	program, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = sandboxtest.WithoutLandlock()
	}
	if err == nil {
		err = syscall.Exec(program, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "without-landlock:", err)
	os.Exit(1)
}

// TestScript runs the scripts: each is a promise to the user.
func TestScript(t *testing.T) {
	skein, err := exec.LookPath("skein")
	if err == nil {
		err = sandboxtest.BuildInit(t.Context(), filepath.Dir(skein))
	}
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatalf("find Go's cache: %v", err)
	}
	box := sync.OnceValue(func() error { return sandbox.Probe(t.Context(), false) })
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands,
		Setup:               func(env *testscript.Env) error { return setup(env, strings.TrimSpace(string(cache))) },
		Condition: func(name string) (bool, error) {
			if name != "box" {
				return false, &unknownError{name}
			}
			return need("a box", box())
		},
	})
}

type unknownError struct{ condition string }

func (e *unknownError) Error() string { return "unknown condition " + e.condition }

// need tells whether a script can have what it needs. Where everything is required, not to
// have it is a failure.
func need(what string, missing error) (bool, error) {
	if missing != nil && os.Getenv("SKEIN_REQUIRE") == "all" {
		return false, &missingError{what, missing}
	}
	return missing == nil, nil
}

type missingError struct {
	what  string
	cause error
}

func (e *missingError) Error() string { return e.what + " is required here: " + e.cause.Error() }

// setup gives a script an environment that knows nothing of the user's git, and Go's caches,
// so that tests run by an agent need no network.
func setup(env *testscript.Env, cache string) error {
	skein, err := exec.LookPath("skein")
	if err != nil {
		return err
	}
	env.Vars = append(
		env.Vars,
		"SKEIN="+skein,
		"HOME="+filepath.Join(env.WorkDir, ".home"),
		"XDG_CACHE_HOME=", // copies lie where most users have them, below the home folder
		"GOCACHE="+cache,
		"OLLAMA_HOST=127.0.0.1:1", // nobody answers there
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-05T09:00:00Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-05T09:00:00Z",
	)
	return os.Mkdir(filepath.Join(env.WorkDir, ".home"), 0o755)
}
