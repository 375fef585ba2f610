package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubbornVar makes this test binary a program that is told to stop and does not.
const stubbornVar = "SKEIN_TEST_STUBBORN"

func TestMain(m *testing.M) {
	if os.Getenv(stubbornVar) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("asked to stop")
	time.Sleep(time.Minute)
}

// The first interrupt asks for an end in order, the second leaves at once.
func TestInterruptTwice(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), stubbornVar+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "asked to stop"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("it said %q, want %q", lines.Text(), want)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Errorf("it ended with %v, want exit code %d", err, exitInterrupted)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v to leave at once", took)
	}
}

// What each signal does, in a run and outside, with and without children.
func TestInterrupts(t *testing.T) {
	c, term, hup := os.Interrupt, syscall.SIGTERM, syscall.SIGHUP
	type press struct {
		s  os.Signal
		at time.Duration
	}
	const children, run, leave = "children", "run", "leave"
	for name, tt := range map[string]struct {
		children int // -1: outside of a run
		presses  []press
		want     []string // what was done
	}{
		"once, with children":         {2, []press{{c, 0}}, []string{children}},
		"once, without":               {0, []press{{c, 0}}, []string{run}},
		"twice":                       {2, []press{{c, 0}, {c, time.Minute}}, []string{children, run}},
		"twice, without":              {0, []press{{c, 0}, {c, time.Second}}, []string{run}},
		"three times, slowly":         {2, []press{{c, 0}, {c, time.Second}, {c, 2100 * time.Millisecond}}, []string{children, run}},
		"three times within 2 s":      {2, []press{{c, 0}, {c, time.Second}, {c, 2 * time.Second}}, []string{children, run, leave}},
		"the last three within 2 s":   {0, []press{{c, 0}, {c, 10 * time.Second}, {c, 11 * time.Second}, {c, 12 * time.Second}}, []string{run, leave}},
		"a signal to end":             {2, []press{{term, 0}}, []string{run}},
		"the terminal closes":         {2, []press{{hup, 0}}, []string{run}},
		"two signals to end":          {2, []press{{term, 0}, {term, time.Minute}}, []string{run, leave}},
		"an interrupt, then a signal": {2, []press{{c, 0}, {term, time.Minute}}, []string{children, run}},
		"it ends, then a signal":      {0, []press{{c, 0}, {term, time.Second}}, []string{run}},
		"it ends, then two signals":   {0, []press{{c, 0}, {term, time.Second}, {hup, time.Minute}}, []string{run, leave}},
		"a signal, then an interrupt": {2, []press{{term, 0}, {c, time.Second}}, []string{run}},
		"outside of a run":            {-1, []press{{c, 0}, {c, time.Minute}}, []string{run, leave}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			var did []string
			do := func(what string) { did = append(did, what) }
			say := func(line string) { out.WriteString(line + "\n") }
			i := &interrupts{cancel: func() { do(run) }, say: say, exit: func(int) { do(leave) }}
			if tt.children >= 0 {
				ctx := context.WithValue(t.Context(), interruptsKey{}, i)
				defer ofRun(ctx, say, func() int {
					if tt.children > 0 {
						do(children)
					}
					return tt.children
				})()
			}
			began := time.Now()
			for n, p := range tt.presses {
				i.press(p.s, began.Add(p.at))
				if lines := strings.Count(out.String(), "\n"); lines != n+1 {
					t.Errorf("%d lines after %d signals: %q", lines, n+1, out.String())
				}
				if slices.Contains(did, leave) {
					if told := strings.Contains(out.String(), "left at once; "); told != (tt.children >= 0) || strings.Contains(out.String(), "skein worktrees list") != told {
						t.Errorf("it left saying %q, want where kept changes are if there is a run", out.String())
					}
					break // the process is gone
				}
			}
			if !slices.Equal(did, tt.want) {
				t.Errorf("did %q, want %q", did, tt.want)
			}
		})
	}
}
