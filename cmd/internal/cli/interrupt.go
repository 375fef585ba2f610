package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruptible returns a context that the first interrupt cancels, so that everything ends
// in order; the second ends the process at once. A terminal that closes is an interrupt. A
// reader of our output that went away is none: writing fails from then on, and the work is
// brought to its end. Call stop when the work is over.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Heard and dropped, not ignored: programs that we start would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	over := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { // stop waits for it
		for first := true; ; first = false {
			select {
			case <-over:
				return
			case <-signals:
			}
			if !first {
				os.Exit(exitInterrupted)
			}
			_, _ = fmt.Fprintln(os.Stderr, "stopping; once more to leave at once")
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(over)
		wait.Wait()
		cancel()
	}
}
