package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skein/sandbox"
)

// inits lists the processes of this one's that are inits of boxes.
func inits(t testing.TB) (pids []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		stat, err := os.ReadFile(p)
		name, err2 := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
		if err != nil || err2 != nil || !bytes.HasPrefix(name, []byte("skein-init\x00")) {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil || parent != os.Getpid() {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// openKnown opens a box and returns its init. No other may be opened in the meantime.
func openKnown(t *testing.T) (*sandbox.Box, int) {
	t.Helper()
	before := map[int]bool{}
	for _, pid := range inits(t) {
		before[pid] = true
	}
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	for _, pid := range inits(t) {
		if !before[pid] {
			return box, pid
		}
	}
	t.Fatal("the box has no init")
	return nil, 0
}

func signal(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Errorf("signal the init: %v", err)
	}
}

// Whoever wants to go on must be able to tell that the box is gone.
func TestRunTellsThatItsBoxWasKilled(t *testing.T) {
	box, pid := openKnown(t)
	m := mark()
	failed := make(chan error, 1)
	go func() { // waited for below
		_, err := box.Run(context.Background(), bash("(setsid sleep "+m+" & ); sleep "+m))
		failed <- err
	}()
	eventually(t, 5*time.Second, "the command runs", func() bool { return alive(t, "sleep\x00"+m) == 2 })
	signal(t, pid, syscall.SIGKILL) // as the kernel does when memory runs out
	err := <-failed
	_, after := box.Run(t.Context(), bash("true"))
	for _, err := range []error{err, after} {
		if !errors.Is(err, sandbox.ErrEnded) || !errors.Is(err, os.ErrClosed) || !strings.Contains(fmt.Sprint(err), "killed") {
			t.Errorf("Run = %v, want ErrEnded and what became of the init", err)
		}
		var hint interface{ Hint() string }
		if !errors.As(err, &hint) {
			t.Errorf("Run = %v, want a hint", err)
		}
	}
	if n := alive(t, m); n != 0 {
		t.Errorf("%d processes of the command are left", n)
	}
}

// An init that was kept from running for a while, on a machine under load, is waited for
// when only a command's time is over. When nobody wants the command any more it is not.
func TestStuckInit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a box is waited for")
	}
	const stuck = 7 * time.Second // longer than closeFor
	for _, row := range []struct {
		name   string
		cancel bool
	}{{"timeout", false}, {"cancelled", true}} {
		box, pid := openKnown(t)
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := bash("sleep " + mark())
			if !row.cancel {
				c.Timeout = 200 * time.Millisecond
			}
			go func() { // ends with the timers, which are shorter than the test
				time.Sleep(100 * time.Millisecond)
				signal(t, pid, syscall.SIGSTOP)
				if row.cancel {
					cancel()
					return
				}
				time.Sleep(stuck)
				signal(t, pid, syscall.SIGCONT)
			}()
			start := time.Now()
			o, err := box.Run(ctx, c)
			if o.Killed != row.name {
				t.Errorf("Run = killed %q, want %q", o.Killed, row.name)
			}
			if !row.cancel {
				if err != nil {
					t.Errorf("Run after %v = %v, want nil: the init was only slow", time.Since(start), err)
				}
				if got := must(t, box, "echo on"); got != "on\n" {
					t.Errorf("the next command printed %q", got)
				}
				return
			}
			if took := time.Since(start); !errors.Is(err, sandbox.ErrEnded) || took > 2*stuck {
				t.Errorf("Run = %v after %v, want ErrEnded within %v", err, took, 2*stuck)
			}
		})
	}
}
