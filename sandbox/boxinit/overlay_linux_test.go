package boxinit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A path of the policy has no link in it: what has one now leads somewhere else.
func TestTakeFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", ".git"), 0o755), os.Symlink("a", filepath.Join(dir, "soft"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"a/.git": nil, "soft": unix.ELOOP, "soft/.git": unix.ELOOP} {
		fd, err := cloneTree(filepath.Join(dir, path))
		if err == nil {
			_ = unix.Close(fd)
		}
		if errors.Is(err, unix.EPERM) && want == nil {
			t.Logf("no control: only root may take %s", path)
			continue
		}
		if !errors.Is(err, want) {
			t.Errorf("cloneTree(%s) = %v, want %v", path, err, want)
		}
	}
}

// Where no overlay can be, a cache that is shown in the user's own place stays as it is: an
// empty one would be of no use to who has no network.
func TestCacheWithoutOverlay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "v1.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // of what would be wrong
	b := &builder{binds: map[int]int{}}
	if err := b.cache(0, Mount{Kind: Overlay, Source: dir, Target: dir, Writable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "v1.mod")); err != nil {
		t.Errorf("after the overlay that could not be: %v", err)
	}
}
