package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// What a careless parent left open does not reach a command: files, folders, sockets.
func TestHostileDescriptors(t *testing.T) {
	rows := make([]attempt, 0, 4)
	for i, what := range []string{"file", "folder", "socket", "directory above the workspace"} {
		rows = append(rows, attempt{name: what, want: "nothing", script: fmt.Sprintf("try inherited %d %d", 70+i, 71+i)})
	}
	hostile(t, append(rows, attempt{name: "any", want: "nothing", script: "try inherited 3 256"}), func(t *testing.T, w *world) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) })
		for i, path := range []string{"out/f", "out/d", "", "."} {
			fd := pair[0]
			if path != "" {
				flags := unix.O_WRONLY
				if i%2 == 1 {
					flags = unix.O_RDONLY | unix.O_DIRECTORY
				}
				if fd, err = unix.Open(filepath.Join(w.root, path), flags|unix.O_CLOEXEC, 0); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = unix.Close(fd) }()
			}
			if err := unix.Dup3(fd, 70+i, 0); err != nil { // without CLOEXEC
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Close(70 + i) })
		}
	})
}

// Nor does the init keep it, or a folder of the host from building the box.
func TestInitKeepsNoHandles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an init is closed: only root sees what it has open")
	}
	root := shownFolder(t)
	for _, name := range []string{"work/f", "above/f", "upper/.keep", "wd/.keep"} {
		write(t, filepath.Join(root, name), "")
	}
	folder, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0) // without CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(folder) })
	// What a guest has of its own is empty file systems of the box's, which the init measures.
	ofGuest := func(link string, info os.FileInfo) bool {
		if !slices.Contains([]string{"/tmp", "/dev/shm", "/run/skein/home"}, link) {
			return false
		}
		host, err := os.Stat(link)
		return err != nil || host.Sys().(*syscall.Stat_t).Dev != info.Sys().(*syscall.Stat_t).Dev
	}
	held := func(pid int) (list []string) {
		t.Helper()
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil || len(fds) == 0 {
			t.Fatalf("descriptors of %d: %d, %v", pid, len(fds), err)
		}
		for _, fd := range fds {
			link, err := os.Readlink(fd)
			if info, lost := os.Stat(fd); err == nil && (lost == nil && info.IsDir() && !ofGuest(link, info) || strings.Contains(link, filepath.Base(root))) {
				list = append(list, link)
			}
		}
		return list
	}
	if !slices.Contains(held(os.Getpid()), root) {
		t.Error("control: the folder is not seen to be open here")
	}
	layers := &sandbox.Layers{Above: []string{filepath.Join(root, "above")}, Upper: filepath.Join(root, "upper"), Work: filepath.Join(root, "wd")}
	if err := os.Remove(filepath.Join(root, "wd/.keep")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []sandbox.Policy{{}, {Writable: true, Layers: layers}} {
		p.Workspace = filepath.Join(root, "work")
		before := inits(t)
		box := open(t, p)
		must(t, guest(t, box, "g"), "true")
		for _, pid := range inits(t) {
			if list := held(pid); !slices.Contains(before, pid) && len(list) > 0 {
				t.Errorf("the init has open %q", list)
			}
		}
	}
}

// A command whose box was opened at a terminal types nothing there.
func TestHostileTerminal(t *testing.T) {
	dir := shownFolder(t)
	open(t, sandbox.Policy{Workspace: dir}) // or skip
	program := self(t, dir)
	typed := func(where string) (string, int) {
		ptmx, name := terminal(t)
		line, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = ptmx.Close(), line.Close() }()
		var said strings.Builder
		cmd := exec.CommandContext(t.Context(), program, where, dir, program)
		cmd.Env = append(os.Environ(), helper+"=typist")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = line, &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		err = cmd.Run()
		n, err2 := unix.IoctlGetInt(int(line.Fd()), unix.TIOCINQ)
		if err2 != nil {
			t.Fatal(err2)
		}
		return fmt.Sprint(said.String(), err), n
	}
	if text, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && text[0] == '0' && os.Geteuid() != 0 {
		t.Log("no control: on this kernel only root can type for somebody")
	} else if out, n := typed("outside"); n == 0 {
		t.Fatalf("control: nothing was typed outside of a box: %s", out)
	}
	if out, n := typed("box"); n != 0 || !refused(out, "EPERM") {
		t.Errorf("a command typed %d bytes, want none and a refusal: %s", n, out)
	}
}

// terminal makes one: its master, and the path of the line that programs use.
func terminal(t *testing.T) (master *os.File, line string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	need(t, err == nil, fmt.Sprintf("no terminals here: %v", err))
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	return master, fmt.Sprintf("/dev/pts/%d", n)
}

// typist tries to type on its terminal, itself or by a command of a box on args[1]. Its input
// is that terminal. What was refused is the error.
func typist(ctx context.Context, args []string) error {
	line, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		return err
	}
	if args[0] == "outside" {
		return errors.Join(try([]string{"type", "/dev/tty"}), try([]string{"type", line}))
	}
	box, err := sandbox.Open(ctx, sandbox.Policy{Workspace: args[1], Env: sandbox.Environment(os.Environ())})
	if err != nil {
		return err
	}
	script := "for f in /dev/tty " + line + " /dev/stdin /dev/console /proc/$PPID/fd/0; do " + helper + "=try " + args[2] + " type $f; done"
	o, err := box.Run(ctx, sandbox.Command{Argv: []string{"bash", "-c", script}, Timeout: time.Minute})
	if err == nil {
		err = errors.New(string(o.Combined))
	}
	return errors.Join(err, box.Close())
}

// A process that leaves its command by all means lives on outside, and not in a box: neither
// after the command nor after the box.
func TestHostileDaemons(t *testing.T) {
	box, bare := open(t, sandbox.Policy{Workspace: t.TempDir()}), outside(t, t.TempDir())
	for _, name := range []string{"double fork", "of everything cleared"} {
		t.Run(name, func(t *testing.T) {
			m := mark()
			script := "(setsid bash -c 'setsid sleep " + m + " & ' >/dev/null 2>&1 &) ; sleep 0.1"
			if name != "double fork" {
				script = "(setsid env -i bash -c 'setsid sleep " + m + " </dev/null & cd /' >/dev/null 2>&1 &) ; sleep 0.1"
			}
			must(t, bare, script)
			if n := alive(t, "sleep\x00"+m); n != 1 {
				t.Fatalf("control: %d processes live on outside of a box, want 1", n)
			}
			endMarked(t, m)
			must(t, box, script)
			if n := alive(t, "sleep\x00"+m); n != 0 {
				t.Errorf("%d processes live on after their command in a box, want none", n)
			}
		})
	}
}

// endMarked ends the processes of a test that its command line names.
func endMarked(t *testing.T, mark string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil || !strings.HasPrefix(string(text), "sleep\x00"+mark) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(p, "/proc/%d/cmdline", &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	eventually(t, 5*time.Second, "the processes have ended", func() bool { return alive(t, mark) == 0 })
}

// Whatever commands do to the pid 1 of their box and to all that they can signal: the box
// goes on, and so do the others.
func TestHostileSignals(t *testing.T) {
	box, other := open(t, sandbox.Policy{Workspace: t.TempDir()}), open(t, sandbox.Policy{Workspace: t.TempDir()})
	m := mark()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = other.Run(ctx, bash("sleep "+m)) }) // how it ends is seen below
	eventually(t, 10*time.Second, "the other box runs its command", func() bool { return alive(t, "sleep\x00"+m) == 1 })
	control := exec.CommandContext(t.Context(), "sleep", "60")
	if err := control.Start(); err != nil {
		t.Fatal(err)
	}
	if err := control.Process.Signal(syscall.SIGKILL); err != nil || control.Wait() == nil {
		t.Errorf("control: a signal changes nothing outside of a box: %v", err)
	}
	for _, script := range []string{
		"kill -STOP 1", "kill -KILL 1", "kill -SEGV 1", "kill -TERM 1", "kill -INT 1", "kill -ABRT 1", "kill -KILL -1",
		"for s in $(seq 1 64); do kill -$s 1; done",
		"for t in /proc/1/task/*; do for s in $(seq 1 64); do kill -$s ${t##*/}; done; done", "ulimit -u 0; ulimit -n 4; kill -STOP -1", "renice 19 1; taskset -p 1 1; ionice -c 3 -p 1",
		"exec 2>&1; prlimit --pid 1 --nofile=3:3", "prlimit --pid 1 --nproc=1:1", "prlimit --pid 1 --as=1:1",
	} {
		if _, err := box.Run(t.Context(), sandbox.Command{Argv: []string{"bash", "-c", script}, Timeout: 5 * time.Second}); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if got := must(t, box, "echo on"); got != "on\n" {
			t.Errorf("after %s: %q, want on", script, got)
		}
	}
	if n := alive(t, "sleep\x00"+m); n != 1 {
		t.Errorf("%d commands of the other box run, want 1", n)
	}
	cancel()
	wg.Wait()
}
