package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/sandbox"
)

// both runs a test of commands without a box and, where there is one, inside.
func both(t *testing.T, test func(t *testing.T, dir string, in runner)) {
	t.Run("bare", func(t *testing.T) {
		needProgram(t, "bash")
		dir := t.TempDir()
		test(t, dir, outside(t, dir))
	})
	t.Run("box", func(t *testing.T) {
		dir := t.TempDir()
		test(t, dir, open(t, sandbox.Policy{Workspace: dir, Writable: true, Limits: sandbox.Limits{Output: -1}}))
	})
}

func bash(script string) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-c", script}}
}

func TestOutput(t *testing.T) {
	both(t, func(t *testing.T, dir string, in runner) {
		write(t, filepath.Join(dir, "sub/f"), "in sub\n")
		for _, row := range []struct {
			name, script             string
			change                   func(*sandbox.Command)
			stdout, stderr, combined string
			exit                     int
		}{
			{name: "apart", script: "echo out; sleep 0.1; echo err >&2", stdout: "out\n", stderr: "err\n", combined: "out\nerr\n"},
			{name: "merged", script: "for i in 1 2 3; do echo o$i; echo e$i >&2; done", change: func(c *sandbox.Command) { c.Merge = true }, stdout: "o1\ne1\no2\ne2\no3\ne3\n", combined: "o1\ne1\no2\ne2\no3\ne3\n"},
			{name: "any bytes", script: "printf %s \xff\xfe$A | od -An -tx1", change: func(c *sandbox.Command) { c.Env = []string{"A=\x80"} }, stdout: " ff fe 80\n", combined: " ff fe 80\n"},
			{name: "exit code", script: "exit 7", exit: 7},
			{name: "signal", script: "kill -TERM $$", exit: 143},
			{name: "folder", script: "cat f; basename $PWD", change: func(c *sandbox.Command) { c.Dir = "sub" }, stdout: "in sub\nsub\n", combined: "in sub\nsub\n"},
			{name: "environment", script: "echo $A$B", change: func(c *sandbox.Command) { c.Env = []string{"A=1", "B=2", "A=3"} }, stdout: "32\n", combined: "32\n"},
			{name: "no input", script: "cat; echo end", stdout: "end\n", combined: "end\n"},
		} {
			t.Run(row.name, func(t *testing.T) {
				c := bash(row.script)
				if row.change != nil {
					row.change(&c)
				}
				o, err := in.Run(t.Context(), c)
				got := fmt.Sprintf("%q %q %q %d %q %d", o.Stdout, o.Stderr, o.Combined, o.Exit, o.Killed, o.Dropped)
				want := fmt.Sprintf("%q %q %q %d %q %d", row.stdout, row.stderr, row.combined, row.exit, "", 0)
				if err != nil || got != want {
					t.Errorf("Run(%s) = %s, %v, want %s", row.script, got, err, want)
				}
			})
		}
	})
}

func TestOutputLimit(t *testing.T) {
	both(t, func(t *testing.T, _ string, in runner) {
		c := bash("printf head; head -c 300000 /dev/zero; printf tail; printf e >&2")
		c.Limit = 1000
		o, err := in.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Combined) != 1000 || len(o.Stdout) != 1000 || o.Dropped != 300009-1000 {
			t.Errorf("Run kept %d and %d bytes and dropped %d, want 1000, 1000 and %d", len(o.Combined), len(o.Stdout), o.Dropped, 300009-1000)
		}
		if !strings.HasPrefix(string(o.Stdout), "head\x00") || !strings.HasSuffix(string(o.Stdout), "\x00tail") || string(o.Stderr) != "e" {
			t.Errorf("Run kept %q … %q, want head … tail", o.Stdout[:6], o.Stdout[994:])
		}
	})
}

func TestEndlessOutputIsHeldBack(t *testing.T) {
	both(t, func(t *testing.T, _ string, in runner) {
		c := bash("yes")
		c.Timeout, c.Limit = 300*time.Millisecond, 1000
		o, err := in.Run(t.Context(), c)
		if err != nil || o.Killed != "timeout" || len(o.Combined) != 1000 || o.Dropped == 0 {
			t.Errorf("Run = killed %q, %d bytes kept, %d dropped, %v, want timeout and 1000 kept", o.Killed, len(o.Combined), o.Dropped, err)
		}
	})
}

func TestCommandsOverlap(t *testing.T) {
	both(t, func(t *testing.T, _ string, in runner) {
		var wg sync.WaitGroup
		// Each waits for the other: one after the other they would never end.
		for _, script := range []string{"mkfifo a 2>/dev/null; echo x > a", "until [ -p a ]; do sleep 0.01; done; cat a"} {
			wg.Go(func() {
				c := bash(script)
				c.Timeout = 20 * time.Second
				if o, err := in.Run(t.Context(), c); err != nil || o.Exit != 0 {
					t.Errorf("Run(%s) = exit %d, killed %q, %v, want 0", script, o.Exit, o.Killed, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestRunAfterCancel(t *testing.T) {
	both(t, func(t *testing.T, dir string, in runner) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := in.Run(ctx, bash("echo x > ran")); !errors.Is(err, context.Canceled) {
			t.Errorf("Run with a cancelled context = %v, want context.Canceled", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Error("Run with a cancelled context ran the command")
		}
	})
}

func TestBareEndsItsSession(t *testing.T) {
	needProgram(t, "bash")
	bare := &sandbox.Bare{Dir: t.TempDir(), Env: sandbox.Environment(os.Environ())}
	m := fmt.Sprintf("%d.5", 8_000_000+os.Getpid())
	for _, row := range []struct{ name, script, killed string }{
		{"what is left in the background", "sleep " + m + " & echo x", ""},
		{"what has a group of its own", "set -m; sleep " + m + " & echo x", ""},
		{"what still has its parent", "(setsid sleep " + m + "; :) & sleep " + m + "; :", "timeout"},
	} {
		c := bash(row.script)
		if row.killed != "" {
			c.Timeout = time.Second // enough for all of it to be there
		}
		o, err := bare.Run(t.Context(), c)
		if err != nil || o.Killed != row.killed {
			t.Errorf("%s: Run = killed %q, %v, want %q", row.name, o.Killed, err, row.killed)
		}
		eventually(t, time.Second, "nothing is left of: "+row.name, func() bool { return alive(t, "sleep\x00"+m) == 0 })
	}
	ended := make(chan sandbox.Output, 1)
	go func() { // waited for below
		o, _ := bare.Run(context.Background(), bash("sleep "+m))
		ended <- o
	}()
	eventually(t, 5*time.Second, "the command runs", func() bool { return alive(t, "sleep\x00"+m) == 1 })
	if err := bare.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if o := <-ended; o.Killed != "cancelled" {
		t.Errorf("Run during Close = killed %q, want cancelled", o.Killed)
	}
	if _, err := bare.Run(t.Context(), bash("true")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Run after Close = %v, want os.ErrClosed", err)
	}
}

func TestEnvironment(t *testing.T) {
	got := sandbox.Environment([]string{
		"PATH=/bin", "LANG=C", "LC_ALL=C", "TERM=x", "TZ=UTC", "GOFLAGS=-v", "HOME=/h", "malformed",
		"GITHUB_TOKEN=t", "LC_API_KEY=k", "SSH_AUTH_SOCK=/s", "DEEPSEEK_API_KEY=k", "EDITOR=vi", "GIT_DIR=/x", "LD_PRELOAD=/x", "BASH_ENV=/x",
		"GOPROXY=https://user:password@example.org", "PYTHONPATH=/p",
	})
	want := []string{"PATH=/bin", "LANG=C", "LC_ALL=C", "TERM=x", "TZ=UTC", "GOFLAGS=-v", "HOME=/h", "PYTHONPATH=/p"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("Environment = %q, want %q", got, want)
	}
}
