package sandbox_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/sandbox"
)

// A stalled writer takes nothing until it is let go.
type stalled struct {
	once           sync.Once
	reached, letGo chan struct{}
	taken          strings.Builder
}

func newStalled() *stalled {
	return &stalled{reached: make(chan struct{}), letGo: make(chan struct{})}
}

// Write implements [io.Writer].
func (s *stalled) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.reached) })
	<-s.letGo
	return s.taken.Write(p)
}

// Whoever takes none of the output holds up neither what ends a command nor who asks what it
// has printed.
func TestStalledReaderHoldsNothingUp(t *testing.T) {
	const script = "echo kept >&2; yes"
	for _, end := range []string{"timeout", "cancelled", "closed"} {
		t.Run(end, func(t *testing.T) {
			both(t, func(t *testing.T, _ string, in runner) {
				out := newStalled()
				ended := make(chan sandbox.Output, 1)
				defer func() { close(out.letGo) }()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := bash(script)
				if c.Out = out; end == "timeout" {
					c.Timeout = 500 * time.Millisecond
				}
				go func() { // waited for below
					o, _ := in.Run(ctx, c)
					ended <- o
				}()
				<-out.reached
				closing := make(chan error, 1)
				switch end {
				case "cancelled":
					cancel()
				case "closed":
					go func() { closing <- in.(io.Closer).Close() }() // waited for below
				default:
					closing <- nil
				}
				select {
				case o := <-ended:
					if end != "closed" && o.Killed != end {
						t.Errorf("Run = killed %q, want %q", o.Killed, end)
					}
					if !strings.Contains(string(o.Stderr), "kept") || len(o.Stdout) == 0 {
						t.Errorf("Run kept %q and %d bytes, want what was printed", o.Stderr, len(o.Stdout))
					}
				case <-time.After(hang):
					t.Fatalf("the command is not ended, %s, while nobody takes its output", end)
				}
				if end == "closed" {
					if err := <-closing; err != nil {
						t.Errorf("Close = %v", err)
					}
				}
			})
		})
	}
}

// hang is longer than anything here takes, and shorter than a test may.
const hang = 20 * time.Second

func TestOutputOfStalledProcess(t *testing.T) {
	type starter interface {
		Start(ctx context.Context, c sandbox.Command) (*sandbox.Process, error)
	}
	both(t, func(t *testing.T, _ string, in runner) {
		out := newStalled()
		c := bash("echo first; echo second >&2; sleep 100")
		c.Out = out
		p, err := in.(starter).Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		<-out.reached
		eventually(t, hang, "both streams are seen", func() bool {
			text, _, _ := p.Output(0)
			return len(text) == len("first\nsecond\n")
		})
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("Stop = %v", err)
		}
		close(out.letGo)
	})
}

// Whoever is slow to take the output of a command that ends by itself is given all of it, be
// it slower than a pipe that nobody writes to is read.
func TestSlowReaderIsGivenAll(t *testing.T) {
	both(t, func(t *testing.T, _ string, in runner) {
		out := newStalled()
		c := bash("seq 1 20000")
		c.Out = out
		slow := time.AfterFunc(1500*time.Millisecond, func() { close(out.letGo) })
		defer slow.Stop()
		o, err := in.Run(t.Context(), c)
		if err != nil || o.Exit != 0 {
			t.Fatalf("Run = exit %d, killed %q, %v", o.Exit, o.Killed, err)
		}
		if got := out.taken.String(); got != string(o.Stdout) || !strings.HasSuffix(got, "\n20000\n") {
			t.Errorf("%d bytes were handed on and %d kept, want all of both", len(got), len(o.Stdout))
		}
	})
}
