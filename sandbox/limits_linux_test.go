package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// hogLimit is how much memory a hog may have, bytes.
const hogLimit = 300 << 20

// hogVariable says what TestHog takes.
const hogVariable = "SANDBOX_TEST_HOG"

// TestHog is a helper: it takes 1 GiB of memory in some way and keeps it, or writes as much to
// a file.
func TestHog(t *testing.T) {
	const step, steps = 16 << 20, 64
	taken := 0
	take := func(do func(i int) error) {
		t.Helper()
		for i := range steps {
			if err := do(i); err != nil {
				t.Fatalf("after %d MiB: %v", taken>>20, err)
			}
			if taken += step; taken-step < hogLimit && taken >= hogLimit {
				fmt.Println("over", time.Now().UnixNano())
			}
		}
	}
	private, shared := unix.MAP_ANON|unix.MAP_PRIVATE, unix.MAP_ANON|unix.MAP_SHARED
	how, headless := strings.CutPrefix(os.Getenv(hogVariable), "headless: ")
	if headless {
		loseFirstThread()
	}
	switch how {
	case "one":
		take(func(int) error { return fill(-1, step, private) })
	case "shared":
		take(func(int) error { return fill(-1, step, shared) })
	case "share": // one of many
		must0(t, fill(-1, step, private))
	case "many":
		take(func(int) error {
			cmd := exec.CommandContext(t.Context(), os.Args[0], os.Args[1:]...)
			cmd.Env = append(os.Environ(), hogVariable+"=share")
			return cmd.Start()
		})
	case "nameless": // never mapped
		fd, err := unix.MemfdCreate("hog", 0)
		must0(t, err)
		take(func(int) error { return writeAll(fd, make([]byte, step)) })
	case "nameless, many":
		take(func(int) error {
			fd, err := unix.MemfdCreate("hog", 0)
			return errors.Join(err, writeAll(fd, make([]byte, step)))
		})
	case "segments": // attached to fill them only
		take(func(int) error {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, step, unix.IPC_CREAT|0o600)
			if err != nil {
				return err
			}
			memory, err := unix.SysvShmAttach(id, 0, 0)
			if err != nil {
				return err
			}
			touch(memory)
			return unix.SysvShmDetach(memory)
		})
	case "children that nobody waits for": // each is there long enough to be seen
		ossignal.Ignore(unix.SIGCHLD)
		take(func(int) error {
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "head -c 16m /dev/zero > $0; sleep 0.5", fmt.Sprint("fill", taken))
			err := cmd.Start()
			_ = cmd.Wait() // says that there is no child
			return err
		})
	case "closed file":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			fmt.Println(err)
		}
		f, err := os.Create("fill")
		must0(t, err)
		take(func(int) error { _, err := f.Write(make([]byte, step)); return err })
	default:
		t.Skip("a helper")
	}
	time.Sleep(time.Minute)
}

func must0(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(fd, size, flags int) error {
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	touch(memory)
	return err
}

func touch(memory []byte) {
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// What goes over a limit is ended, and nothing else: not the box, not its other commands, no
// other box, which goes on answering.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	var place unix.Statfs_t
	if err := unix.Statfs(dir, &place); err != nil {
		t.Fatal(err)
	}
	onDisk := place.Type != unix.TMPFS_MAGIC
	take := func(how string) string {
		return hogVariable + "='" + how + "' " + program + " -test.run '^TestHog$'"
	}
	memory := sandbox.Limits{Memory: hogLimit}
	processes := sandbox.Limits{Processes: 150}
	many := sandbox.Limits{Processes: 1500}
	disk := sandbox.Limits{Disk: 64 << 20}
	unread := "unwatched"
	if os.Geteuid() == 0 {
		unread = "disk" // nothing in a box is closed to root's init
	}
	for _, row := range []struct {
		name, script string
		limits       sandbox.Limits
		want         string
	}{
		{"fork bomb", "b() { b | b & }; b; sleep 60", processes, "processes"},
		{"larger fork bomb", "b() { b | b & }; b; sleep 60", many, "processes"},
		{"fork bomb that hides", "ulimit -q 5; b() { setsid bash -c 'sleep 60 & sleep 60' & }; while :; do b; done", processes, "processes"},
		{"fork bomb that spins", "b() { setsid bash -c 'while :; do :; done' & }; while :; do b; done", processes, "processes"},
		{"memory of one", take("one"), memory, "memory"},
		{"shared memory", take("shared"), memory, "memory"},
		{"memory of many", take("many"), memory, "memory"},
		{"file without a name", take("nameless"), memory, "memory"},
		{"files without a name", take("nameless, many"), memory, "memory"},
		{"memory of one without its first thread", take("headless: one"), memory, "memory"},
		{"file without a name of one without its first thread", take("headless: nameless"), memory, "memory"},
		{"memory of one with a name that misleads", "cp " + program + " RssAnon:; " + strings.Replace(take("one"), program, "./RssAnon:", 1), memory, "memory"},
		{"System V memory", take("segments"), memory, "memory"},
		{"disk", "yes > fill", disk, "disk"},
		{"disk by many", "i=0; while :; do head -c 4m /dev/zero > fill$i; i=$((i+1)); done", disk, "disk"},
		{"disk by orphans", "while :; do (setsid head -c 4m /dev/zero >> fill &); sleep 0.02; done", disk, "disk"},
		{"disk by children that nobody waits for", take("children that nobody waits for"), disk, "disk"},
		{"disk by one that closes itself", take("closed file"), disk, "disk"},
		{"disk by a closed program", "cp $(type -P head) h; chmod 111 h; ./h -c 3G /dev/zero > fill; sleep 60", disk, unread},
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
			before := running(t)
			seen := watch(t, other, func() bool {
				return row.want == "processes" && running(t)-before > row.limits.Processes || row.want == "disk" && sizeOf(work) > row.limits.Disk
			})
			start := time.Now()
			o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", row.script}, Timeout: 30 * time.Second})
			end := time.Now()
			over := seen()
			if err != nil || o.Killed != row.want {
				t.Errorf("Run = killed %q, exit %d, %v, want killed for %q; output:\n%.300s", o.Killed, o.Exit, err, row.want, o.Combined)
			}
			t.Logf("%s: ended for %s %v after its start", row.name, o.Killed, end.Sub(start).Round(time.Millisecond))
			var told int64
			if _, text, ok := strings.Cut(string(o.Stdout), "over "); ok && row.want == "memory" {
				if _, err := fmt.Sscan(text, &told); err == nil {
					over = time.Unix(0, told)
				}
			}
			if !over.IsZero() {
				t.Logf("that is %v after it had the limit", end.Sub(over).Round(time.Millisecond))
			}
			if row.want == "disk" {
				t.Logf("written: %d MiB of %d", sizeOf(work)>>20, row.limits.Disk>>20)
			}
			for name, b := range map[string]*sandbox.Box{"box": box, "other box": other} {
				if got := must(t, b, "echo alive"); got != "alive\n" {
					t.Errorf("%s afterwards: %q, want alive", name, got)
				}
			}
			if err := <-beside; err != nil && !strings.Contains(row.name, "bomb") { // it may not have started
				t.Errorf("the command beside it: %v", err)
			}
			if got := must(t, box, "set -- /proc/[0-9]*; test $# -lt 10 && echo few; grep -c . /proc/sysvipc/shm"); got != "few\n1\n" {
				t.Errorf("processes or segments are left in the box: %q", got)
			}
		})
	}
}

// watch has a box answer one command after the other until the function that it returns is
// called, which says when it first saw what over tells, and logs how long answers took.
func watch(t *testing.T, box *sandbox.Box, over func() bool) (stop func() time.Time) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var seen time.Time
	var took []time.Duration
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil && seen.IsZero() {
			if over() {
				seen = time.Now()
			}
			<-tick.C
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			o, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", "echo alive"}, Timeout: time.Minute})
			if took = append(took, time.Since(start)); err != nil || string(o.Stdout) != "alive\n" {
				t.Errorf("the other box meanwhile: %q, %q, %v, want alive", o.Stdout, o.Killed, err)
			}
		}
	})
	return func() time.Time {
		cancel()
		wg.Wait()
		if len(took) > 0 {
			t.Logf("meanwhile the other box answered %d times, within %v at the median and %v at most",
				len(took), median(took).Round(time.Millisecond), slices.Max(took).Round(time.Millisecond))
		}
		return seen
	}
}

// running counts the processes of this machine, those of the box among them.
func running(t *testing.T) int {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	return len(names)
}

// sizeOf adds up the files of a folder.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // it comes and goes
	})
	return bytes
}

// What is bounded by the kernel itself fails, and the rest goes on.
func TestFullPlaces(t *testing.T) {
	work := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: work, Writable: true, Limits: sandbox.Limits{FileSize: 200 << 20, Memory: 4 << 30}})
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

// Limits by which no command could run are refused, and say what is enough: with that work goes on.
func TestLeastLimits(t *testing.T) {
	needProgram(t, "git")
	dir := t.TempDir()
	must(t, outside(t, dir), "git init -q . && git commit -q --allow-empty -m first")
	for name, row := range map[string]struct{ few, enough sandbox.Limits }{
		"memory":    {sandbox.Limits{Memory: 16<<20 - 1}, sandbox.Limits{Memory: 16 << 20}},
		"processes": {sandbox.Limits{Processes: 15}, sandbox.Limits{Processes: 16}},
		"file":      {sandbox.Limits{FileSize: 1<<20 - 1}, sandbox.Limits{FileSize: 1 << 20}},
	} {
		_, err := sandbox.Open(t.Context(), sandbox.Policy{Workspace: dir, Limits: row.few})
		hint := (interface{ Hint() string })(nil)
		if !errors.As(err, &hint) || errors.Is(err, sandbox.ErrNoBox) || !strings.Contains(err.Error(), name) || !strings.Contains(hint.Hint(), "at least") {
			t.Errorf("Open with %+v = %v, want an error with a hint that is not about boxes", row.few, err)
		}
		g := guest(t, open(t, sandbox.Policy{Workspace: dir, Limits: row.enough, Git: [2]string{"Ada", "ada@example.org"}}), "g")
		if got := must(t, g, "git log --format=%s | cat | head -n 1; sleep 0.3"); got != "first\n" {
			t.Errorf("with %+v it prints %q, want first", row.enough, got)
		}
	}
	open(t, sandbox.Policy{Workspace: dir, Limits: sandbox.Limits{Memory: 1 << 60, Processes: 1 << 30, Disk: 1 << 60, FileSize: 1 << 60, Output: 1 << 60}})
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
