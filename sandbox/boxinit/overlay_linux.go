package boxinit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stage is covered by a file system of our own while overlays are made: the kernel takes
// layers only from trees that are attached somewhere. It goes with the root of the host; the
// overlays keep what they need of it.
const stage = "/run"

// layers is what an overlay is made of: trees attached nowhere yet.
type layers struct {
	lower []int // read-only, the topmost first
	upper int   // holds the folders of Upper and Work; -1 for none
}

func takeLayers(m Mount) (layers, error) {
	l := layers{upper: -1}
	const attr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	for _, path := range append(m.Above[:len(m.Above):len(m.Above)], m.Source) {
		fd, err := takeTree(path, attr|unix.MOUNT_ATTR_RDONLY)
		if err != nil {
			return l, err
		}
		l.lower = append(l.lower, fd)
	}
	if m.Upper == "" {
		return l, nil
	}
	var err error
	l.upper, err = takeTree(filepath.Dir(m.Upper), attr) // both folders in one mount
	return l, err
}

// overlays makes the trees of all overlays, attached nowhere. Their layers in memory share
// one bound.
func (b *builder) overlays() error {
	if len(b.piles) == 0 {
		return nil
	}
	if err := b.tmpfs(Mount{Target: stage, Writable: true, Size: b.spec.Memory}); err != nil {
		return fmt.Errorf("stage for overlays: %w", err)
	}
	for i, m := range b.spec.Mounts {
		l, ok := b.piles[i]
		if !ok {
			continue
		}
		fd, err := b.overlay(filepath.Join(stage, strconv.Itoa(i)), l, m)
		switch {
		case err == nil:
			b.binds[i] = fd
			for _, name := range m.Names {
				b.veiled[filepath.Join(m.Target, name)] = true
			}
		case m.Kind == Layers:
			return fmt.Errorf("show %s in layers: %w", m.Source, err)
		case m.Kind == Veil: // what stands there now is hidden by mounts, too
			// By handle: by its name it may be below the stage.
			if b.binds[i], err = unix.OpenTree(l.lower[0], "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
				return fmt.Errorf("take %s: %w", m.Source, err)
			}
		}
	}
	return nil
}

// overlay makes one tree of the layers of m. dir is a place on the stage.
func (b *builder) overlay(dir string, l layers, m Mount) (int, error) {
	if m.Kind != Veil && !m.Writable && len(l.lower) == 1 {
		return l.lower[0], nil // the kernel makes no overlay of one layer
	}
	// No index: it would refuse to read below a layer that another box writes.
	options := []string{"userxattr", "", "index", "off"}
	var lower []string
	for i, fd := range l.lower {
		place := filepath.Join(dir, strconv.Itoa(i)) // free of what would need escaping
		if err := os.MkdirAll(place, 0o755); err != nil {
			return -1, err
		}
		if err := moveTo(fd, place); err != nil {
			return -1, err
		}
		lower = append(lower, place)
	}
	if m.Kind == Veil {
		top := filepath.Join(dir, "veil")
		if err := veil(top, lower[0], m.Names); err != nil {
			return -1, err
		}
		lower = append([]string{top}, lower...)
	}
	options = append(options, "lowerdir", strings.Join(lower, ":"))
	if m.Writable {
		upper, work, err := b.upper(dir, l, m)
		if err != nil {
			return -1, err
		}
		options = append(options, "upperdir", upper, "workdir", work)
	}
	return newFileSystem("overlay", options...)
}

// upper names the folders that take what is changed, by names without special characters.
func (b *builder) upper(dir string, l layers, m Mount) (upper, work string, err error) {
	upper, work = filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, path := range []string{upper, work} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return "", "", err
		}
	}
	if m.Upper == "" {
		return upper, work, b.user.take(Mount{Target: upper, Mine: true})
	}
	if err := moveTo(l.upper, work); err != nil {
		return "", "", err
	}
	if upper, err = byHandle(l.upper, m.Upper); err == nil {
		work, err = byHandle(l.upper, m.Work)
	}
	return upper, work, err
}

// byHandle opens the folder of that name in a tree, and is a path to it as long as this thread
// runs, whose descriptors are its own.
func byHandle(tree int, path string) (string, error) {
	fd, err := unix.Openat(tree, filepath.Base(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return "/proc/thread-self/fd/" + strconv.Itoa(fd), nil
}

// cache lets commands change what they see of a folder of the user's without changing it:
// a build cache stays warm, and clean. Where no overlay can be, one that has a place of its
// own is cold, and one that is shown where the user has it stays as it is.
func (b *builder) cache(i int, m Mount) error {
	fd, ok := b.binds[i]
	if _, err := os.Lstat(m.Target); !ok && err == nil && m.Source == m.Target {
		return nil
	}
	if !ok {
		m.Kind, m.Size = Tmpfs, b.spec.Memory
		return b.tmpfs(m)
	}
	if err := os.MkdirAll(m.Target, 0o755); err != nil {
		return err
	}
	return moveTo(fd, m.Target)
}

// layers attaches the workspace.
func (b *builder) layers(fd int, m Mount) error {
	target := m.Target
	if err := mountPoint(fd, target); err != nil {
		return err
	}
	if err := moveTo(fd, target); err != nil {
		return err
	}
	if m.Writable && slices.Contains(m.Scopes, ".") {
		return nil
	}
	scopes := map[string]int{}
	if m.Writable {
		for _, name := range m.Scopes {
			tree, err := takeScope(fd, name)
			if err != nil {
				return fmt.Errorf("scope %s: %w", name, err)
			}
			scopes[name] = tree
		}
	}
	if err := setFlags(fd, "", unix.AT_EMPTY_PATH, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	for name, tree := range scopes { // none lies in another
		if err := moveTo(tree, filepath.Join(target, name)); err != nil {
			return fmt.Errorf("scope %s: %w", name, err)
		}
	}
	return nil
}

// takeScope takes a folder of the workspace by handle: no layer may lead it somewhere else.
func takeScope(workspace int, name string) (int, error) {
	dir, err := unix.Openat2(workspace, name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(dir) }()
	return unix.OpenTree(dir, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}
