package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// callVariable names the call that TestCall makes, in a box or outside.
const callVariable = "SANDBOX_TEST_CALL"

// raw calls the kernel and returns its answer.
func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// calls are what no command may call, with the answer of the filter. Outside of a box the
// answer is another one, whoever asks.
var calls = map[string]struct {
	want unix.Errno
	call func() error
}{
	"unshare":          {unix.EPERM, func() error { return raw(unix.SYS_UNSHARE, unix.CLONE_FS) }},
	"clone3":           {unix.ENOSYS, func() error { return raw(unix.SYS_CLONE3, 0, 0) }},
	"ptrace":           {unix.EPERM, func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1<<22+1) }}, // nobody: a traced program stops at the next signal
	"process_vm_readv": {unix.EPERM, func() error { return raw(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid())) }},
	"keyctl":           {unix.EPERM, func() error { return raw(unix.SYS_KEYCTL, 1<<20) }},
	"io_uring":         {unix.ENOSYS, func() error { return raw(unix.SYS_IO_URING_SETUP, 0, 0) }},
	"open_tree":        {unix.EPERM, func() error { return raw(unix.SYS_OPEN_TREE, 1<<20, 0, 0) }},
	"setns":            {unix.EPERM, func() error { return raw(unix.SYS_SETNS, 1<<20, 0) }},
	"TIOCSTI":          {unix.EPERM, func() error { return raw(unix.SYS_IOCTL, 1<<20, unix.TIOCSTI) }},
	"netlink":          {unix.EAFNOSUPPORT, func() error { return raw(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_DGRAM, 0) }},
	"setuid file":      {unix.EPERM, func() error { return raw(unix.SYS_FCHMOD, 1<<20, 0o4755) }},
	"tag":              {unix.EPERM, func() error { return raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_MSGQUEUE, 1) }},
	"lease":            {unix.EPERM, func() error { return raw(unix.SYS_FCNTL, 1<<20, unix.F_SETLEASE, unix.F_RDLCK) }},
	"closed to others": {unix.EPERM, func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
	"limits of others": {unix.EPERM, func() error {
		var now unix.Rlimit
		return errors.Join(unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, nil, &now), raw(unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&now))))
	}},
}

// TestCall is a helper, see TestCallsAreDenied.
func TestCall(t *testing.T) {
	name := os.Getenv(callVariable)
	if name == "" {
		t.Skip("a helper")
	}
	var errno unix.Errno
	_ = errors.As(calls[name].call(), &errno)
	fmt.Printf("errno %d\n", errno)
}

func TestCallsAreDenied(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	box, bare := open(t, sandbox.Policy{Workspace: dir}), outside(t, dir)
	for name, row := range calls {
		// Not exec: the program has a parent of its own then.
		script := fmt.Sprintf("%s='%s' %s -test.run '^TestCall$' | grep -o 'errno .*' || exit 1", callVariable, name, program)
		want := fmt.Sprintf("errno %d\n", row.want)
		if got := must(t, bare, script); got == want {
			t.Errorf("control: %s outside of a box = %q, want another answer", name, got)
		}
		if got := must(t, box, script); got != want {
			t.Errorf("%s in a box = %q, want %q", name, got, want)
		}
	}
}

// TestServe is a helper: Go's own listeners ask for MPTCP first.
func TestServe(t *testing.T) {
	if os.Getenv(callVariable) != "serve" {
		t.Skip("a helper")
	}
	lc := net.ListenConfig{}
	lc.SetMultipathTCP(true)
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ended := make(chan error, 1)
	go func() { // waited for below
		conn, err := l.Accept()
		if err == nil {
			_, err = conn.Write([]byte("hello"))
			err = errors.Join(err, conn.Close())
		}
		ended <- err
	}()
	d := net.Dialer{}
	d.SetMultipathTCP(true)
	conn, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if mptcp, e := conn.(*net.TCPConn).MultipathTCP(); mptcp || e != nil || err != nil || string(text) != "hello" {
		t.Errorf("read %q, %v over MPTCP: %v, %v, want hello over TCP", text, err, mptcp, e)
	}
	if err := errors.Join(<-ended, conn.Close()); err != nil {
		t.Error(err)
	}
}

// What a box must not take away from programs.
func TestWorkGoesOn(t *testing.T) {
	dir := repository(t)
	program := self(t, dir)
	write(t, filepath.Join(dir, "Makefile"), "all: a b\na b:\n\t@sleep 0.01; echo $@ > $@\n")
	write(t, filepath.Join(dir, "p.py"), "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    with m.Pool(3) as p: print(sum(p.map(f, range(10))))\n    v = m.Value('i', 3); print(v.value)\n")
	write(t, filepath.Join(dir, "n.js"), "const {Worker, isMainThread, parentPort} = require('worker_threads');\nif (isMainThread) { const w = new Worker(__filename); w.on('message', m => { console.log(m, require('child_process').execSync('echo child').toString().trim()); }); } else parentPort.postMessage('worker');\n")
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true, GitDir: filepath.Join(dir, ".git"), Git: [2]string{"n", "n@example.org"}})
	for _, row := range []struct{ program, script, want string }{
		{"git", "git add -A . && git commit -qm second && git log --format=%s | head -1", "second\n"},
		{"make", "make -s -j2 && cat a b", "a\nb\n"},
		{"bash", "set -m; sleep 1 & jobs -r | grep -c sleep; kill %1; wait %1 2>/dev/null; set +m; diff <(echo x) <(echo x) && echo same; trap 'echo usr1' USR1; kill -USR1 $$", "1\nsame\nusr1\n"},
		{"bash", "mkfifo f && (echo through > f & cat f); exec 5<>/dev/null; mkdir d1 d2; touch d1/x; mv d1/x d2/y && ln d2/y d2/z && ln -s d2/z l && ls d2", "through\ny\nz\n"},
		{"bash", "mv d2 /tmp/d3 && ls /tmp/d3 && mkdir -p ~/a && mv /tmp/d3/y ~/a/ && ls ~/a", "y\nz\ny\n"},
		{"taskset", "sleep 5 & renice 19 $! >/dev/null && taskset -p 1 $! >/dev/null && ionice -c 3 -p $! && chrt -b -p 0 $! && echo slow; kill $!", "slow\n"},
		{"python3", "python3 p.py", "285\n3\n"},
		{"node", "node n.js", "worker child\n"},
		{"script", "script -qec 'stty size >/dev/null; tty >/dev/null && echo tty' /dev/null | tr -d '\\r'", "tty\n"},
		{"bash", callVariable + "=serve " + program + " -test.v -test.run '^TestServe$' | grep -o 'PASS: TestServe'", "PASS: TestServe\n"},
	} {
		t.Run(row.program, func(t *testing.T) {
			needProgram(t, row.program)
			if got := must(t, box, row.script); got != row.want {
				t.Errorf("%s: %q, want %q", row.script, got, row.want)
			}
		})
	}
}
