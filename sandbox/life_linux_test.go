package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"skein/sandbox"
)

// mark is an argument of sleep that tells the processes of one test from all others.
var mark = func() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%d.%d", 7_000_000+os.Getpid(), n)
	}
}()

// escapes start a process that leaves the command: %s is how long it sleeps.
var escapes = map[string]string{
	"background":        "sleep %s & ",
	"session":           "setsid sleep %s >/dev/null 2>&1 & ",
	"double fork":       "(setsid bash -c 'setsid sleep %s & ' >/dev/null 2>&1 &) ; ",
	"keeps output":      "(setsid sleep %s & ) ; ",
	"lowers its limit":  "(ulimit -q 5; setsid sleep %s >/dev/null 2>&1 &) ; ",
	"ignores signals":   "(trap '' TERM HUP INT; setsid sleep %s >/dev/null 2>&1 &) ; ",
	"clears everything": "(env -i setsid sleep %s </dev/null >/dev/null 2>&1 &) ; ",
}

func TestNothingOutlivesItsCommand(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	for name, escape := range escapes {
		for _, end := range []string{"exit", "timeout", "cancel"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				m := mark()
				script := fmt.Sprintf(escape, m) + "echo started; sleep 0.05; "
				c := sandbox.Command{Argv: []string{"bash", "-c", script}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				want, wantExit := "", 0
				switch end {
				case "timeout":
					c.Argv[2] += "sleep " + m + "; :"
					c.Timeout, want, wantExit = 200*time.Millisecond, "timeout", 137
				case "cancel":
					c.Argv[2] += "sleep " + m + "; :"
					want, wantExit = "cancelled", 137
					go func() { // ends with the test's own wait for Run
						eventually(t, 5*time.Second, "the command runs", func() bool { return alive(t, "sleep\x00"+m) == 2 })
						cancel()
					}()
				}
				start := time.Now()
				o, err := box.Run(ctx, c)
				took := time.Since(start)
				if err != nil || o.Killed != want || o.Exit != wantExit || string(o.Stdout) != "started\n" {
					t.Errorf("Run = exit %d, killed %q, output %q, %v; want exit %d, killed %q, output started", o.Exit, o.Killed, o.Stdout, err, wantExit, want)
				}
				if n := alive(t, m); n != 0 {
					t.Errorf("%d processes of the command are left", n)
				}
				t.Logf("ended after %v", took.Round(time.Millisecond))
			})
		}
	}
}

// One command's end is not another's, whatever both have left behind.
func TestCommandsEndApart(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	long, short := mark(), mark()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", "(setsid sleep " + long + " & ); sleep " + long}})
	})
	eventually(t, 5*time.Second, "the long command runs", func() bool { return alive(t, "sleep\x00"+long) == 2 })
	before := alive(t, long)
	must(t, box, "(setsid sleep "+short+" >/dev/null 2>&1 & ); sleep 0.05")
	if got := alive(t, short); got != 0 {
		t.Errorf("%d processes of the short command are left", got)
	}
	if got := alive(t, long); got != before {
		t.Errorf("%d processes of the long command run after the short one, want %d", got, before)
	}
	cancel()
	wg.Wait()
	if got := alive(t, long); got != 0 {
		t.Errorf("%d processes of the long command are left", got)
	}
}

func TestForkBombEndsWithItsTimeout(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	m := mark()
	// Bounded, so that a failure of this test does not end the machine.
	script := "b() { for i in 1 2 3; do [ $1 -gt 0 ] && b $(($1-1)) & done; sleep " + m + "; }; b 4; wait"
	start := time.Now()
	o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", script}, Timeout: 300 * time.Millisecond})
	if err != nil || o.Killed != "timeout" {
		t.Errorf("Run = killed %q, %v, want timeout", o.Killed, err)
	}
	t.Logf("ended after %v, with a timeout of 300ms", time.Since(start).Round(time.Millisecond))
	if n := alive(t, m); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	m := mark()
	ended := make(chan error, 1)
	go func() { // waited for below
		_, err := box.Run(context.Background(), sandbox.Command{Argv: []string{"bash", "-c", "(setsid sleep " + m + " & ); sleep " + m}})
		ended <- err
	}()
	eventually(t, 5*time.Second, "the command runs", func() bool { return alive(t, m) >= 2 })
	start := time.Now()
	if err := box.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	t.Logf("closed after %v", time.Since(start).Round(time.Millisecond))
	if n := alive(t, m); n != 0 {
		t.Errorf("%d processes are left after Close", n)
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Run during Close = %v, want os.ErrClosed", err)
	}
	if _, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"true"}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Run after Close = %v, want os.ErrClosed", err)
	}
	if err := box.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
}

func TestKillingTheOpenerEndsTheBox(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := mark()
	cmd := exec.CommandContext(t.Context(), exe, t.TempDir(), "(setsid sleep "+m+" & ); sleep "+m)
	cmd.Env = append(os.Environ(), helper+"=hold")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the box runs its command", func() bool { return alive(t, "sleep\x00"+m) >= 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_ = cmd.Wait()
	eventually(t, hang, "the box has ended", func() bool { return alive(t, m) == 0 })
	t.Logf("nothing is left after %v", time.Since(start).Round(time.Millisecond))
}

func TestManyBoxesAtOnce(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	dir := t.TempDir()
	before := descriptors(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			box, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: dir, Env: sandbox.Environment(os.Environ())})
			if err != nil {
				t.Errorf("Open = %v", err)
				return
			}
			for range 3 {
				o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"echo", strconv.Itoa(i)}})
				if got, want := string(o.Stdout), strconv.Itoa(i)+"\n"; err != nil || got != want {
					t.Errorf("Run = %q, %v, want %q", got, err, want)
				}
			}
			if err := box.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	wg.Wait()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open after all boxes were closed, %d before", after, before)
	}
}

// A descriptor of the harness never reaches a command.
func TestCommandsInheritNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "")
	const fd = 77
	left, err := syscall.Open(path, syscall.O_WRONLY, 0)
	if err == nil {
		err = syscall.Dup3(left, fd, 0) // as a careless parent leaves it
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = syscall.Close(left), syscall.Close(fd) }()
	const script = "echo x >&77"
	must(t, outside(t, t.TempDir()), script)
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	if out, exit := sh(t, box, script); exit == 0 {
		t.Errorf("%s: exit 0 in a box, want a failure; output:\n%s", script, out)
	}
	if got := must(t, box, "ls /proc/self/fd | wc -l"); got != "4\n" {
		t.Errorf("ls has %s descriptors, want 4: three and the folder it lists", got)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A process whose first thread has ended lives: it ends with its command, whatever runs beside.
func TestEndOfAProcessWithoutItsFirstThread(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Writable: true, ReadOnly: []sandbox.Mount{{Host: dir}}})
	headless := helper + "=headless " + program
	for _, row := range []struct{ name, script, killed string }{
		{"left behind", "rm -f out; setsid env " + headless + " >& out & until grep -sq headless out; do sleep 0.01; done", ""},
		{"of a command that times out", "exec env " + headless + " > out", "timeout"},
	} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, alone %v", row.name, alone), func(t *testing.T) {
				if !alone {
					beside := start(t, box, bash("sleep 600"))
					defer func() { _ = beside.Stop(context.Background()) }()
				}
				const count = "set -- /proc/[0-9]*; echo $#"
				before := must(t, box, count)
				c := bash(row.script)
				c.Timeout = 3 * time.Second
				o, err := box.Run(t.Context(), c)
				if err != nil || o.Killed != row.killed {
					t.Errorf("Run = killed %q, %v, want %q; output %q", o.Killed, err, row.killed, o.Combined)
				}
				if got := must(t, box, "cat out; "+count); got != "headless\n"+before {
					t.Errorf("after it, its output and the processes of the box = %q, want %q", got, "headless\n"+before)
				}
			})
		}
	}
}

// A segment of System V outlives the process that made it, and ends with its command.
func TestSegmentsLastAsLongAsTheirCommand(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Writable: true, ReadOnly: []sandbox.Mount{{Host: dir}}})
	const count = "echo $(($(wc -l < /proc/sysvipc/shm) - 1))"
	segment := helper + "=try " + program + " segment; "
	p := start(t, box, bash(segment+"echo made; until [ -e go ]; do sleep 0.01; done; "+count))
	until(t, p, "made\n", 0)
	must(t, box, "sleep 0.3") // the init looks at it meanwhile, and for what is left when it ends
	must(t, box, "touch go")
	if o, err := p.Result(); err != nil || string(o.Stdout) != "made\n1\n" {
		t.Errorf("Result = %q, %v, want one segment while the command runs", o.Combined, err)
	}
	if got := must(t, box, count); got != "0\n" {
		t.Errorf("segments after the command: %q, want 0", got)
	}
	beside := start(t, box, bash("sleep 600"))
	must(t, box, segment)
	if err := beside.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := must(t, box, count); got != "0\n" {
		t.Errorf("segments after the command and the one beside it: %q, want 0", got)
	}
}
