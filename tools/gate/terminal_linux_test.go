package gate_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/tools/gate"
)

// pty opens a terminal: what is written to keys is typed into it.
func pty(t *testing.T) (keys, terminal *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	need(t, err == nil, "no terminals on this system")
	t.Cleanup(func() { _ = keys.Close() })
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	// By number rather than by name: where /dev/pts is mounted does not matter.
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	terminal = os.NewFile(slave, "terminal")
	t.Cleanup(func() { _ = terminal.Close() })
	return keys, terminal
}

type flusher interface{ Flush() error }

type keyboard struct{ *os.File }

func (k keyboard) Flush() error {
	return unix.IoctlSetInt(int(k.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}

// Where typing ahead cannot be excluded nothing is approved.
func TestTerminalThatCannotForget(t *testing.T) {
	null, err := os.Open(os.DevNull) // no terminal
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	in := struct {
		io.Reader
		flusher
	}{strings.NewReader("y\n"), keyboard{null}}
	if a, err := gate.Terminal(in, io.Discard).Ask(t.Context(), gate.Question{}); a.Granted || !errors.Is(err, unix.ENOTTY) {
		t.Errorf("Ask = %v, %v, want the error of Flush", a, err)
	}
}

func need(t *testing.T, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("SKEIN_REQUIRE") == "all":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

// A person who types y twice has approved what was shown, not what comes next.
func TestTerminalForgetsWhatWasTypedAhead(t *testing.T) {
	keys, terminal := pty(t)
	prompts := make(chan struct{}, 10)
	out := writer(func(p []byte) (int, error) {
		if strings.HasPrefix(string(p), "allow?") {
			prompts <- struct{}{}
		}
		return len(p), nil
	})
	term := gate.Terminal(keyboard{terminal}, out)
	for i, step := range []struct {
		before, after string
		want          bool
	}{
		{"y\ny\n", "y\ny\nn\ny", true}, // what is typed before the first question counts as little
		{"", "n\n", false},
		{"y\ny", "n\ny\n", false},
		{"", "y\n", true},
	} {
		typed(t, keys, step.before)
		answer := make(chan bool, 1)
		go func() { // waited for below
			a, err := term.Ask(t.Context(), gate.Question{})
			answer <- a.Granted && err == nil
		}()
		select {
		case <-prompts:
		case <-time.After(10 * time.Second):
			t.Fatalf("question %d is not shown", i)
		}
		select {
		case ok := <-answer:
			t.Fatalf("question %d was answered %v before anything was typed", i, ok)
		case <-time.After(20 * time.Millisecond): // long enough for a read that finds a line
		}
		typed(t, keys, step.after)
		if ok := <-answer; ok != step.want {
			t.Errorf("question %d: answered %v, want %v", i, ok, step.want)
		}
	}
}

func typed(t *testing.T, keys *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
}
