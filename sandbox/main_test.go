package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/sandbox"
	"skein/sandbox/sandboxtest"
)

// helper selects what the test binary does instead of testing.
const helper = "SANDBOX_TEST_HELPER"

func TestMain(m *testing.M) {
	if sandbox.IsInit() {
		sandbox.Main()
	}
	if what := os.Getenv(helper); what != "" {
		if err := help(what, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	done := func(code int) { os.Exit(code) }
	if raced {
		dir, err := quicken()
		if err != nil {
			fmt.Fprintln(os.Stderr, "build the test without the race detector:", err)
			os.Exit(1)
		}
		done = func(code int) {
			_ = os.RemoveAll(dir)
			os.Exit(code)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(done))
}

// quickTest names this test, built without the race detector. It is what runs as the user
// nobody and as a helper in boxes, more than a thousand times: the detector would only make
// those runs many times as long.
const quickTest = "SANDBOX_TEST_QUICK"

// quicken builds the quick test into a folder of its own.
func quicken() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "sandbox-quick-"); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "quick")
	cmd := exec.CommandContext(context.Background(), "go", "test", "-c", "-race=false", "-o", program, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("%w: %s", err, out), os.RemoveAll(dir))
	}
	return dir, os.Setenv(quickTest, program)
}

// help is what programs of the tests' own do, inside of boxes and out.
func help(what string, args []string) error {
	ctx := context.Background()
	switch what {
	case "dial":
		var d net.Dialer
		conn, err := d.DialContext(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("hello"))
		return errors.Join(err, conn.Close())
	case "nothing":
		return nil
	case "open", "open with the network": // opens a box and says why not
		box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: args[0], Net: what != "open"})
		if err != nil {
			if hint := (interface{ Hint() string })(nil); errors.As(err, &hint) {
				err = fmt.Errorf("%w; hint: %s", err, hint.Hint())
			}
			return err
		}
		return box.Close()
	case "look": // lists what a box shows of a folder without some paths
		box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: args[0], Readable: args[1:2], Hidden: args[2:]})
		if err != nil {
			return err
		}
		out, err := box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", `cd "$0" && grep -rsH ''`, args[1]}})
		fmt.Printf("%s", out.Combined)
		return errors.Join(err, box.Close())
	case "examine": // prints the report of the self-test
		report, err := sandbox.Examine(ctx)
		for _, s := range report.Steps {
			fmt.Printf("%s: %v: %s\n", s.What, s.Held, s.Detail)
		}
		return err
	case "without landlock": // as a kernel before 5.13
		if err := sandboxtest.WithoutLandlock(); err != nil {
			return err
		}
		return help(args[0], args[1:])
	case "examine network":
		return sandbox.ExamineNet(ctx)
	case "examine always": // until it is killed
		for {
			if err := sandbox.Probe(ctx, false); err != nil {
				return err
			}
		}
	case "grow": // writes a file that is larger than it may be
		limit := syscall.Rlimit{Cur: 1024, Max: 1024}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		f, err := sandbox.OpenFiles(sandbox.Policy{Workspace: args[0], Writable: true})
		if err != nil {
			return err
		}
		return errors.Join(f.WriteFile(args[1], make([]byte, 4096), 0o644), f.Close())
	case "hold": // holds a box with a process in it until it is killed
		box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: args[0], Writable: true})
		if err != nil {
			return err
		}
		_, err = box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", args[1]}})
		return err
	}
	return helpLinux(ctx, what, args)
}

func need(t testing.TB, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("SKEIN_REQUIRE") == "all":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

func needProgram(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	need(t, err == nil, "no "+name+" on PATH")
}

// open opens a box that ends with the test, or skips the test where none can be had.
func open(t testing.TB, p sandbox.Policy) *sandbox.Box {
	t.Helper()
	needProgram(t, "bash")
	if p.Env == nil {
		p.Env = sandbox.Environment(os.Environ())
	}
	box, err := sandbox.Open(t.Context(), p)
	need(t, !errors.Is(err, sandbox.ErrNoBox), fmt.Sprint(err))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return box
}

type runner interface {
	Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error)
}

// sh runs a script and returns what it printed and its exit code.
func sh(t testing.TB, in runner, script string, env ...string) (string, int) {
	t.Helper()
	o, err := in.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", script}, Env: env, Timeout: time.Minute, Merge: true})
	if err != nil {
		t.Fatalf("Run(%s) = %v", script, err)
	}
	return string(o.Combined), o.Exit
}

// outside runs scripts in dir without a box: what fails in a box has to work there.
func outside(t testing.TB, dir string) *sandbox.Bare {
	t.Helper()
	bare := &sandbox.Bare{Dir: dir, Env: append(sandbox.Environment(os.Environ()), hermetic...)}
	t.Cleanup(func() { _ = bare.Close() })
	return bare
}

// hermetic keeps the machine's git configuration out of tests.
var hermetic = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
	"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alive counts the processes of this machine whose command line holds mark.
func alive(t testing.TB, mark string) int { return len(pids(t, mark)) }

// pids lists them.
func pids(t testing.TB, mark string) (list []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if text, err := os.ReadFile(p); err == nil && strings.Contains(string(text), mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			list = append(list, pid)
		}
	}
	return list
}

// eventually waits for something that the kernel does in its own time.
func eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
