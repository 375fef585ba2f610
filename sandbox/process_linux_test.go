package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/sandbox"
)

type starter interface {
	runner
	Start(ctx context.Context, c sandbox.Command) (*sandbox.Process, error)
	Close() error
}

// everywhere runs a test of processes without a box, in one, and as a guest of one.
func everywhere(t *testing.T, test func(t *testing.T, dir string, in starter)) {
	both(t, func(t *testing.T, dir string, in runner) { test(t, dir, in.(starter)) })
	t.Run("guest", func(t *testing.T) {
		dir := t.TempDir()
		test(t, dir, guest(t, open(t, sandbox.Policy{Workspace: dir, Writable: true}), "g"))
	})
}

func start(t *testing.T, in starter, c sandbox.Command) *sandbox.Process {
	t.Helper()
	p, err := in.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// until waits for text in what a process prints, and returns where it ends.
func until(t *testing.T, p *sandbox.Process, text string, since int64) int64 {
	t.Helper()
	next := since
	eventually(t, 10*time.Second, "the process prints "+text, func() bool {
		var got []byte
		got, _, next = p.Output(since)
		return strings.HasSuffix(string(got), text)
	})
	return next
}

// A process outlives the call that started it, tells what it prints while it runs, and ends
// with all that it started when it is told to.
func TestProcess(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		m := mark()
		ctx, cancel := context.WithCancel(t.Context())
		p, err := in.Start(ctx, bash("echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2; (sleep "+m+"; :) & sleep "+m))
		if err != nil {
			t.Fatal(err)
		}
		cancel() // bounds the starting only
		at := until(t, p, "one\n", 0)
		must(t, in, "touch go") // other commands go on beside it
		if next := until(t, p, "two\n", at); next != 8 {
			t.Errorf("Output ends at %d, want 8", next)
		}
		if text, dropped, next := p.Output(0); string(text) != "one\ntwo\n" || dropped != 0 || next != 8 {
			t.Errorf("Output(0) = %q, %d, %d, want all of it", text, dropped, next)
		}
		eventually(t, 5*time.Second, "both sleep", func() bool { return alive(t, "sleep\x00"+m) == 2 })
		select {
		case <-p.Done():
			t.Error("the process ended by itself")
		default:
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("Stop = %v", err)
		}
		if n := alive(t, "sleep\x00"+m); n != 0 {
			t.Errorf("%d processes are left after Stop", n)
		}
		o, err := p.Result()
		if err != nil || o.Killed != "cancelled" || string(o.Stdout) != "one\n" || string(o.Stderr) != "two\n" {
			t.Errorf("Result = killed %q, %q, %q, %v", o.Killed, o.Stdout, o.Stderr, err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("second Stop = %v", err)
		}
	})
}

func TestProcessEndsByItself(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		p := start(t, in, bash("echo x; exit 7"))
		if o, err := p.Result(); err != nil || o.Exit != 7 || o.Killed != "" || string(o.Combined) != "x\n" {
			t.Errorf("Result = %+v, %v, want exit 7", o, err)
		}
		select {
		case <-p.Done():
		default:
			t.Error("Done is open after Result")
		}
		c := bash("sleep 60")
		c.Timeout = 100 * time.Millisecond
		if o, err := start(t, in, c).Result(); err != nil || o.Killed != "timeout" {
			t.Errorf("Result = killed %q, %v, want timeout", o.Killed, err)
		}
	})
}

func TestProcessNotStarted(t *testing.T) {
	everywhere(t, func(t *testing.T, dir string, in starter) {
		if _, err := in.Start(t.Context(), sandbox.Command{Argv: []string{"no-such-program"}}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Start of what there is not = %v, want os.ErrNotExist", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := in.Start(ctx, bash("touch ran")); !errors.Is(err, context.Canceled) {
			t.Errorf("Start with a cancelled context = %v, want context.Canceled", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			t.Error("Start with a cancelled context ran the command")
		}
	})
}

// What a process prints is bounded; who reads it is told what he missed.
func TestProcessOutputIsBounded(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		c := bash("printf head; head -c 300000 /dev/zero; printf tail; sleep 60")
		c.Limit = 1000
		p := start(t, in, c)
		until(t, p, "tail", 0)
		for _, row := range []struct{ since, kept, dropped int64 }{
			{0, 1000, 299008}, {4, 996, 299008}, {500, 500, 299008}, {1000, 500, 298508}, {300000, 8, 0}, {300008, 0, 0}, {400000, 0, 0},
		} {
			text, dropped, next := p.Output(row.since)
			if int64(len(text)) != row.kept || dropped != row.dropped || next != 300008 {
				t.Errorf("Output(%d) = %d bytes, %d dropped, next %d, want %d, %d, 300008", row.since, len(text), dropped, next, row.kept, row.dropped)
			}
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Whoever started processes and closes what they run in is rid of them.
func TestProcessesEndWithTheirPlace(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		m := mark()
		seen := map[int64]bool{}
		var all []*sandbox.Process
		for range 100 {
			p := start(t, in, sandbox.Command{Argv: []string{"sleep", m}, Limit: 1000})
			all, seen[p.ID()] = append(all, p), true
		}
		eventually(t, 10*time.Second, "100 processes run", func() bool { return alive(t, "sleep\x00"+m) == 100 })
		if len(seen) != 100 {
			t.Errorf("100 processes have %d numbers", len(seen))
		}
		if err := all[42].Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if n := alive(t, "sleep\x00"+m); n != 99 {
			t.Errorf("%d processes run after one of 100 was stopped, want 99", n)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if n := alive(t, "sleep\x00"+m); n != 0 {
			t.Errorf("%d processes are left after Close", n)
		}
		for _, p := range all {
			select {
			case <-p.Done():
			default:
				t.Fatal("a process is not done after Close")
			}
		}
		if _, err := in.Start(t.Context(), bash("true")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Start after Close = %v, want os.ErrClosed", err)
		}
	})
}

func TestProcessesAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				p, err := in.Start(t.Context(), bash(fmt.Sprintf("echo %d; read -r never; exit 3", i)))
				if err != nil {
					t.Error(err)
					return
				}
				if o, err := p.Result(); err != nil || o.Exit != 3 || string(o.Combined) != fmt.Sprintf("%d\n", i) {
					t.Errorf("process %d: %q, exit %d, %v", i, o.Combined, o.Exit, err)
				}
			})
		}
		wg.Wait()
	})
}

// A command reads what it is given, a pipe or a file, and nothing without.
func TestStdin(t *testing.T) {
	everywhere(t, func(t *testing.T, _ string, in starter) {
		path := filepath.Join(t.TempDir(), "given")
		write(t, path, "from a file\n")
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		c := bash("cat")
		c.Stdin = file
		if o, err := in.Run(t.Context(), c); err != nil || string(o.Stdout) != "from a file\n" {
			t.Errorf("Run = %q, %v, want what is in the file", o.Stdout, err)
		}

		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c = bash("while read -r line; do echo got $line; done; echo end")
		c.Stdin = r
		p := start(t, in, c)
		_ = r.Close() // ours
		var at int64
		for _, line := range []string{"a", "b"} {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				t.Fatal(err)
			}
			at = until(t, p, "got "+line+"\n", at)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if o, err := p.Result(); err != nil || string(o.Stdout) != "got a\ngot b\nend\n" {
			t.Errorf("Result = %q, %v, want all lines", o.Stdout, err)
		}
	})
}
