package orchestrator

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"skein/sandbox"
)

// Readers share a handle: the first to leave takes it from nobody, the last one closes it, and
// who comes later has one of its own. One that could not be opened is tried again.
func TestSharedEndsWithItsLastUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/a.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	s := shared[*sandbox.Files]{open: func() (*sandbox.Files, error) { return nil, no }}
	if _, _, err := s.join(); !errors.Is(err, no) {
		t.Errorf("join = %v, want %v", err, no)
	}
	s.open = func() (*sandbox.Files, error) { return sandbox.OpenFiles(sandbox.Policy{Workspace: dir}) }
	join := func() view {
		t.Helper()
		files, leave, err := s.join()
		if err != nil {
			t.Fatal(err)
		}
		return view{files, leave}
	}
	leave := func(v view) {
		t.Helper()
		if err := v.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
	}
	one, two := join(), join()
	leave(one)
	leave(one) // which is not the other's
	if _, err := two.Lstat("a.txt"); err != nil {
		t.Errorf("Lstat after another reader left = %v", err)
	}
	leave(two)
	if _, err := two.Lstat("a.txt"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Lstat after all have left = %v, want %v", err, fs.ErrClosed)
	}
	three := join()
	defer leave(three)
	if _, err := three.Lstat("a.txt"); err != nil {
		t.Errorf("Lstat of who came later = %v", err)
	}
}
