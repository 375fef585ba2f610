package sandbox

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever a command swaps for a file that says where a git directory is: nobody waits.
func TestReadLineWaitsForNoPipe(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, ".git"), filepath.Join(dir, "pipe")
	if err := os.WriteFile(file, []byte("gitdir: there\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 20_000 // where a file was looked at and then opened by name, a few hundred were enough
	var wg sync.WaitGroup
	done, swapped := make(chan struct{}), 0
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, pipe, unix.RENAME_EXCHANGE) == nil {
				swapped++
			}
		}
	})
	read, other := 0, 0
	waits := time.AfterFunc(time.Minute, func() { panic("readLine waits for a pipe") })
	for range most {
		line, ok := readLine(file, "gitdir:")
		switch {
		case ok && line == "there":
			read++
		case ok:
			t.Errorf("readLine = %q, want there", line)
		default:
			other++
		}
	}
	waits.Stop()
	close(done)
	wg.Wait()
	if swapped == 0 || read == 0 || other == 0 {
		t.Fatalf("%d swaps, %d lines and %d pipes read: nothing was tried", swapped, read, other)
	}
}
