package sandbox_test

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// must runs a script that has to succeed and returns what it printed.
func must(t testing.TB, in runner, script string, env ...string) string {
	t.Helper()
	out, exit := sh(t, in, script, env...)
	if exit != 0 {
		t.Fatalf("%s: exit %d, want 0; output:\n%s", script, exit, out)
	}
	return out
}

// repository makes a folder with a commit in it and returns its path.
func repository(t testing.TB) string {
	t.Helper()
	needProgram(t, "git")
	dir := t.TempDir()
	must(t, outside(t, dir), `git init -q -b main && echo first > README.md && mkdir sub && echo x > sub/f && git add . && git commit -qm first`)
	return dir
}

// self puts this program into dir, where boxes see it, and returns its path.
func self(t testing.TB, dir string) string {
	t.Helper()
	exe := os.Getenv(quickTest)
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	in, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	to := filepath.Join(dir, "self")
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// loseFirstThread ends the first thread of this process, as pthread_exit in main does, and
// returns when the kernel says that it is dead.
func loseFirstThread() {
	found := make(chan struct{})
	var look func()
	look = func() { // the last one ends with its thread, the others when that is found
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			close(found)
			_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of the thread alone
		}
		go look() // on another thread: this one is taken
		<-found
	}
	go look() // see above
	<-found
	for {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil || strings.Contains(string(text), "\nState:\tZ") {
			return
		}
		runtime.Gosched()
	}
}
