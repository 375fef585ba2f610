package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// look opens the workspace as the box shows it. The box's user namespace is ours, which is
// what the kernel asks of those who look through an init that nobody else may look into.
func (b *Box) look() (*os.File, error) {
	root, err := os.Open(fmt.Sprintf("/proc/%d/root", b.init.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("look into the box: %w", err)
	}
	defer func() { _ = root.Close() }()
	fd, err := unix.Openat2(int(root.Fd()), strings.TrimPrefix(b.plan.view, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("look into the box at %s: %w", b.plan.view, err)
	}
	return os.NewFile(uintptr(fd), b.plan.view), nil
}

// Root is a path on the host to the workspace as the box shows it, layers and all. It is
// meant for this program and those it starts. It must not be used any more once Close is
// called: its number may then be that of another folder. Handles that were opened through it
// are given back before.
func (b *Box) Root() string { return b.root }

// Files opens the files of the workspace as the box shows them, see [OpenFiles]. The caller
// must close them before the box.
func (b *Box) Files() (*Files, error) {
	b.viewing.RLock()
	defer b.viewing.RUnlock()
	select {
	case <-b.gone:
		return nil, fmt.Errorf("open workspace: %w", b.ended(nil))
	default:
	}
	return b.policy.files(b.root) // Close waits for us: the number is that of our view
}

// FilesBelow is [Box.Files] for a folder of the workspace, named by its path in it, which
// need not be writable though the box is.
func (b *Box) FilesBelow(dir string, writable bool) (*Files, error) {
	whole, err := b.Files()
	if err != nil {
		return nil, err
	}
	part, err := whole.below(filepath.Clean(dir))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace: %w", err), whole.Close())
	}
	part.writable = part.writable && writable
	return part, whole.Close()
}
