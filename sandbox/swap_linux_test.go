package sandbox_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// A command that swaps a folder for a link to .git wins nothing.
func TestSwappedFolder(t *testing.T) { eachWay(t, swappedFolder) }

func swappedFolder(t *testing.T, open way) {
	work := t.TempDir()
	write(t, filepath.Join(work, ".git/config"), "git")
	f, dir := open(t, sandbox.Policy{Workspace: work, Writable: true})
	x, soft := filepath.Join(dir, "x"), filepath.Join(dir, "link")
	write(t, filepath.Join(x, "config"), "real")
	link(t, ".git", soft)
	stop := time.Now().Add(300 * time.Millisecond)
	swapped := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for time.Now().Before(stop) { // x is in turn the folder and the link
			if unix.Renameat2(unix.AT_FDCWD, x, unix.AT_FDCWD, soft, unix.RENAME_EXCHANGE) == nil {
				swapped++
			}
		}
	})
	written, refused := 0, 0
	for time.Now().Before(stop) {
		if f.WriteFile("x/config", []byte("swapped"), 0o644) == nil {
			written++
		} else {
			refused++
		}
	}
	wg.Wait()
	if swapped == 0 || written == 0 || refused == 0 {
		t.Fatalf("%d swaps, %d writes, %d refusals: nothing was tried", swapped, written, refused)
	}
	if got := read(t, filepath.Join(dir, ".git/config")); got != "git" {
		t.Fatalf(".git/config holds %q after %d writes", got, written)
	}
}
