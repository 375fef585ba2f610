package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// Boxes by the hundred are opened at once, are all there at the same time, and leave nothing.
func TestTwoHundredBoxes(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	const boxes, each = 200, 12                     // descriptors that one box takes at most, while a command runs
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	need(t, most.Max >= boxes*each, fmt.Sprintf("200 boxes need %d descriptors, and this user may have %d: raise ulimit -n", boxes*each, most.Max))
	dir, before, mounts := t.TempDir(), descriptors(t), read(t, "/proc/self/mountinfo")
	running := len(inits(t))
	list, program := make([]*sandbox.Box, boxes), tinyInit(t)
	atOnce := func(what string, do func(i int) error) {
		start := time.Now()
		var wg sync.WaitGroup
		for i := range boxes {
			wg.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("%s box %d: %v", what, i, err)
				}
			})
		}
		wg.Wait()
		t.Logf("%s %d boxes: %v", what, boxes, time.Since(start).Round(time.Millisecond))
	}
	env := sandbox.Environment(os.Environ())
	atOnce("open", func(i int) (err error) {
		list[i], err = sandbox.Open(t.Context(), sandbox.Policy{Workspace: dir, Writable: i%2 == 0, Env: env, Init: program})
		return err
	})
	if !t.Failed() {
		if got := len(inits(t)) - running; got != boxes {
			t.Errorf("%d inits run, want %d", got, boxes)
		}
		atOnce("use", func(i int) error {
			o, err := list[i].Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", "echo $0 > /tmp/f; cat /tmp/f", strconv.Itoa(i)}})
			if want := strconv.Itoa(i) + "\n"; err == nil && string(o.Stdout) != want {
				err = fmt.Errorf("output %q, want %q", o.Stdout, want)
			}
			return err
		})
	}
	atOnce("close", func(i int) error {
		if list[i] == nil {
			return nil
		}
		return list[i].Close()
	})
	if got := len(inits(t)) - running; got != 0 {
		t.Errorf("%d inits are left", got)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open afterwards, %d before", after, before)
	}
	if after := read(t, "/proc/self/mountinfo"); after != mounts {
		t.Errorf("mounts changed from\n%s\nto\n%s", mounts, after)
	}
}

// crowd opens as many boxes as args[0] says on the folder args[1], runs the script args[2]
// in each, and prints a line when all have begun.
func crowd(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	begun, failed := make(chan bool, n), make(chan error, n)
	for range n {
		go func() { // ends with the process, which is killed
			box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: args[1], Writable: true, Env: sandbox.Environment(os.Environ())})
			if err != nil {
				failed <- err
				return
			}
			begun <- true
			_, err = box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", args[2]}})
			failed <- err
		}()
	}
	for range n {
		select {
		case <-begun:
		case err := <-failed:
			return err
		}
	}
	return <-failed
}

// Killed with all its boxes, this program leaves no process, and so no descriptor and none of
// the boxes' mounts, and nothing in the folder for temporary files.
func TestNothingIsLeftOfTwentyBoxes(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const boxes = 20
	m, tmp, mounts := mark(), t.TempDir(), read(t, "/proc/self/mountinfo")
	script := "echo x > /tmp/private; echo x > ~/private; (setsid bash -c 'setsid sleep " + m + " & ' >/dev/null 2>&1 &); sleep " + m
	cmd := exec.CommandContext(t.Context(), exe, strconv.Itoa(boxes), t.TempDir(), script)
	cmd.Env = append(os.Environ(), helper+"=crowd", "TMPDIR="+tmp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "all boxes run their commands", func() bool { return alive(t, "sleep\x00"+m) == 2*boxes })
	family := descended(t, cmd.Process.Pid)
	if len(family) < boxes*3 {
		t.Fatalf("%d processes come from the one that holds %d boxes, want at least %d", len(family), boxes, boxes*3)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_ = cmd.Wait()
	eventually(t, hang, "no process is left", func() bool {
		for _, pid := range family {
			if state, _ := stateOf(pid); state != "" && state != "Z" { // a zombie is its new parent's to reap
				return false
			}
		}
		return true
	})
	t.Logf("nothing of %d boxes with %d processes is left after %v", boxes, len(family), time.Since(start).Round(time.Millisecond))
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", left, err)
	}
	if after := read(t, "/proc/self/mountinfo"); after != mounts {
		t.Errorf("mounts changed from\n%s\nto\n%s", mounts, after)
	}
}

// Killed in the middle of its self-test, this program leaves nothing of that either.
func TestNothingIsLeftOfTheSelfTest(t *testing.T) {
	open(t, sandbox.Policy{Workspace: t.TempDir()}) // or skip
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	folders := func() int {
		list, err := filepath.Glob(filepath.Join(tmp, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for i := range 10 {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), helper+"=examine always", "TMPDIR="+tmp)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "the self-test has made its folder", func() bool { return folders() == 1 })
		time.Sleep(time.Duration(i) * 2 * time.Millisecond) // at another moment each time
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		eventually(t, hang, "the folder is gone", func() bool { return folders() == 0 })
	}
}

// stateOf is the state of a process and its parent, "" when there is none.
func stateOf(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// descended lists a process and all that come from it.
func descended(t *testing.T, root int) (family []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			t.Fatal(err)
		}
		for at := pid; at > 1; _, at = stateOf(at) {
			if at == root {
				family = append(family, pid)
				break
			}
		}
	}
	return family
}
