package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// hogLimit is how much memory a hog may have, bytes.
const hogLimit = 300 << 20

// hogVariable says what TestHog takes.
const hogVariable = "SANDBOX_TEST_HOG"

// TestHog is a helper: it takes 1 GiB of memory in some way and keeps it.
func TestHog(t *testing.T) {
	const step, steps = 16 << 20, 64
	switch os.Getenv(hogVariable) {
	case "one", "shared":
		flags := unix.MAP_ANON | unix.MAP_PRIVATE
		if os.Getenv(hogVariable) == "shared" {
			flags = unix.MAP_ANON | unix.MAP_SHARED
		}
		hog(t, flags, step*steps)
	case "share": // one of many
		hog(t, unix.MAP_ANON|unix.MAP_PRIVATE, step)
	case "many":
		for range steps {
			cmd := exec.CommandContext(t.Context(), os.Args[0], os.Args[1:]...)
			cmd.Env = append(os.Environ(), hogVariable+"=share")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
	default:
		t.Skip("a helper")
	}
}

func hog(t *testing.T, flags, size int) {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
		if i == hogLimit {
			fmt.Println("over", time.Now().UnixNano())
		}
	}
	time.Sleep(time.Minute)
}

// What goes over a limit is ended, and nothing else: not the box, not its other commands, no
// other box.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	onDisk := fs.Type != unix.TMPFS_MAGIC
	take := func(how string) string { return hogVariable + "=" + how + " " + program + " -test.run '^TestHog$'" }
	memory := sandbox.Limits{Memory: hogLimit}
	processes := sandbox.Limits{Processes: 150}
	disk := sandbox.Limits{Disk: 64 << 20}
	for _, row := range []struct {
		name, script string
		limits       sandbox.Limits
		want         string
	}{
		{"fork bomb", "b() { b | b & }; b; sleep 60", processes, "processes"},
		{"fork bomb that hides", "ulimit -q 5; b() { setsid bash -c 'sleep 60 & sleep 60' & }; while :; do b; done", processes, "processes"},
		{"memory of one", take("one"), memory, "memory"},
		{"shared memory", take("shared"), memory, "memory"},
		{"memory of many", take("many"), memory, "memory"},
		{"disk", "yes > fill", disk, "disk"},
		{"disk by many", "i=0; while :; do head -c 4m /dev/zero > fill$i; i=$((i+1)); done", disk, "disk"},
		{"disk by orphans", "while :; do (setsid head -c 4m /dev/zero >> fill &); sleep 0.02; done", disk, "disk"},
		{"output", "yes", sandbox.Limits{Output: 8 << 20}, "output"},
		{"output to two", "yes | tee /dev/stderr", sandbox.Limits{Output: 8 << 20}, "output"},
	} {
		t.Run(row.name, func(t *testing.T) {
			need(t, row.want != "disk" || onDisk, "the temporary folder lies in memory")
			work := t.TempDir()
			policy := sandbox.Policy{Workspace: work, Writable: true, ReadOnly: []sandbox.Mount{{Host: dir}}, Limits: row.limits}
			box, other := open(t, policy), open(t, policy)
			m := mark()
			beside := make(chan error, 1)
			go func() { // waited for below
				o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", "sleep 0.6; echo " + m}})
				if err == nil && (o.Killed != "" || string(o.Stdout) != m+"\n") {
					err = fmt.Errorf("killed %q, output %q", o.Killed, o.Stdout)
				}
				beside <- err
			}()
			start := time.Now()
			o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", row.script}, Timeout: 20 * time.Second})
			took := time.Since(start)
			if err != nil || o.Killed != row.want {
				t.Errorf("Run = killed %q, exit %d, %v, want killed for %q; output:\n%.300s", o.Killed, o.Exit, err, row.want, o.Combined)
			}
			t.Logf("%s: ended for %s %v after its start", row.name, o.Killed, took.Round(time.Millisecond))
			var over int64
			if _, err := fmt.Sscanf(string(o.Stdout), "over %d", &over); err == nil {
				t.Logf("that is %v after it had the limit", start.Add(took).Sub(time.Unix(0, over)).Round(time.Millisecond))
			}
			if strings.HasPrefix(row.name, "disk") {
				t.Logf("written: %s", must(t, outside(t, work), "du -sm ."))
			}
			for name, b := range map[string]*sandbox.Box{"box": box, "other box": other} {
				if got := must(t, b, "echo alive"); got != "alive\n" {
					t.Errorf("%s afterwards: %q, want alive", name, got)
				}
			}
			if err := <-beside; err != nil && !strings.Contains(row.name, "bomb") { // it may not have started
				t.Errorf("the command beside it: %v", err)
			}
			if got := must(t, box, "set -- /proc/[0-9]*; test $# -lt 10 && echo few"); got != "few\n" {
				t.Errorf("processes are left in the box: %q", got)
			}
		})
	}
}

// What is bounded by the kernel itself fails, and the rest goes on.
func TestFullPlaces(t *testing.T) {
	work := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: work, Writable: true, Limits: sandbox.Limits{FileSize: 200 << 20}})
	for _, row := range []struct{ script, want string }{
		{"for i in $(seq 8); do head -c 200m /dev/zero > /tmp/f; mv /tmp/f /tmp/f$i; done; cat /tmp/f* | wc -c; rm /tmp/f*", "1073741824\n"},
		{"(trap '' XFSZ; head -c 201m /dev/zero > f); stat -c %s f", "209715200\n"},
	} {
		out, _ := sh(t, box, row.script+" 2>/dev/null")
		if !strings.HasSuffix(out, row.want) {
			t.Errorf("%s: %q, want %q", row.script, out, row.want)
		}
	}
	must(t, box, "echo x > /tmp/x && echo x > "+filepath.Join(work, "x"))
}

// A namespace has a bound of its own; that of the machine stays.
func TestProcessLimitIsTheBoxs(t *testing.T) {
	const file = "/proc/sys/kernel/pid_max"
	before := read(t, file)
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Limits: sandbox.Limits{Processes: 200}})
	need(t, box.Held().Processes, "this kernel does not bound the processes of a box")
	inside := must(t, box, "cat "+file)
	if got := read(t, file); got != before {
		t.Errorf("%s of the machine = %q, want %q as before", file, got, before)
	}
	if inside != "564\n" && inside != before {
		t.Errorf("%s in the box = %q, want 564", file, inside)
	}
}
