package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skein/sandbox/boxinit"
)

// boxed opens a box, or skips the test where none can be had.
func boxed(t *testing.T, dir string) *Box {
	t.Helper()
	box, err := Open(t.Context(), Policy{Workspace: dir, Env: Environment(os.Environ())})
	if errors.Is(err, ErrNoBox) && os.Getenv("SKEIN_REQUIRE") != "all" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	return box
}

// A command that could not be handed to the init leaves nothing that is waited for.
func TestNothingIsLeftOfCallsThatFail(t *testing.T) {
	box := boxed(t, t.TempDir())
	long := strings.Repeat("x", 9<<20) // more than a message holds
	if _, err := box.Run(t.Context(), Command{Argv: []string{"true", long}}); err == nil {
		t.Error("Run with 9 MiB of arguments = nil, want an error")
	}
	guest, err := box.Guest("g")
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Run(t.Context(), Command{Argv: []string{"true"}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Run of a guest that is closed = %v, want os.ErrClosed", err)
	}
	if o, err := box.Run(t.Context(), Command{Argv: []string{"true"}}); err != nil || o.Exit != 0 {
		t.Errorf("Run afterwards = %d, %v", o.Exit, err)
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if len(box.calls) != 0 {
		t.Errorf("%d calls are waited for, want none", len(box.calls))
	}
}

// Answers that nobody asked for hold nothing up.
func TestTooManyAnswers(t *testing.T) {
	conn, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close(), theirs.Close() }()
	b := &Box{conn: conn, calls: map[int64]chan boxinit.Reply{}}
	call := b.expect(1)
	heard := make(chan struct{})
	go func() { // waited for below
		defer close(heard)
		b.hear()
	}()
	for range 5 {
		frame, err := boxinit.Encode(boxinit.Reply{ID: 1, Started: true})
		if err == nil {
			_, err = theirs.Write(frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = theirs.Close()
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		t.Error("the answers are not read to their end")
	}
	if r := <-call; !r.Started {
		t.Errorf("the first answer is %+v, want the one that was sent", r)
	}
}

// The files of a box are those of its workspace, or there are none: never those of a folder that
// was opened when the box was closed.
func TestFilesWhileTheBoxIsClosed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ours"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		box := boxed(t, dir)
		var wg sync.WaitGroup
		begun := make(chan struct{}, 8)
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					f, err := box.Files()
					if i == 0 {
						begun <- struct{}{}
					}
					if err != nil {
						if !errors.Is(err, ErrEnded) {
							t.Errorf("Files = %v, want ErrEnded", err)
						}
						return
					}
					if _, err := f.Lstat("ours"); err != nil {
						t.Errorf("other files were opened: %v", err)
					}
					_ = f.Close()
				}
			})
		}
		for range 4 {
			<-begun
		}
		if err := box.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		wg.Wait()
		_ = box.Root() // is read at any time
	}
}
