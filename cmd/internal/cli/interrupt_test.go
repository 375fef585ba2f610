package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
