package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A builder attaches the mounts of one box.
type builder struct {
	spec  Spec
	user  owner
	binds map[int]int    // index in spec.Mounts → its tree, still attached nowhere
	gone  map[int]bool   // indexes in spec.Mounts of what is left out
	piles map[int]layers // index in spec.Mounts → what its tree is going to be made of
	null  int            // the tree of /dev/null, shown where a file is hidden; see nullAt
	procs int            // the file system of Kind Proc, 0 before it is made
	seals []int          // mounts that turn read-only once all is in place

	veiled map[string]bool // paths that a veil left out: nothing stands there to be hidden
}

// build turns the mount namespace of this process into the box.
//
// Order matters. Trees that the box shows are taken first, while everything is still
// where the host has it and writable, and overlays are made of them. Then the host's root is
// left for an empty one, so that what nobody thought of is not there. The taken trees and the
// box's own file systems are attached to it, and last those turn read-only that were writable
// only to hold mount points.
func build(spec Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	b := &builder{spec: spec, user: ownerOf(spec), binds: map[int]int{}, gone: map[int]bool{}, piles: map[int]layers{}, veiled: map[string]bool{}}
	if err := b.take(); err != nil {
		return err
	}
	if err := b.overlays(); err != nil {
		return err
	}
	if err := b.leave(); err != nil {
		return fmt.Errorf("leave the root of the host: %w", err)
	}
	if err := b.keepNull(); err != nil {
		return fmt.Errorf("keep %s: %w", os.DevNull, err)
	}
	for i, m := range spec.Mounts {
		if b.gone[i] {
			continue
		}
		if err := b.attach(i, m); err != nil && (!m.Optional || !changed(err)) { // what was removed since it was taken
			return fmt.Errorf("%s at %s: %w", m.Kind, m.Target, err)
		}
	}
	if err := errors.Join(unix.Unmount(nullAt, unix.MNT_DETACH), os.Remove(nullAt)); err != nil {
		return fmt.Errorf("remove what hid files: %w", err)
	}
	if err := b.write(); err != nil {
		return err
	}
	for _, fd := range b.seals {
		if err := setFlags(fd, "", unix.AT_EMPTY_PATH, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("seal the box: %w", err)
		}
	}
	return os.Chdir("/")
}

// nullAt is where the tree of /dev/null is while the box is built: kernels before 6.15 clone
// only what is attached somewhere.
const nullAt = "/.skein-null"

func (b *builder) keepNull() error {
	if err := os.WriteFile(nullAt, nil, 0o600); err != nil {
		return err
	}
	return moveTo(b.null, nullAt)
}

// leave moves this process from the host's tree to an empty one and gives the host's back.
func (b *builder) leave() error {
	root, err := newFileSystem("tmpfs", "mode", "0755")
	if err != nil {
		return err
	}
	if err := moveTo(root, stage); err != nil {
		return err
	}
	if err := os.Chdir(stage); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one now covers the new one
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	b.seals = append(b.seals, root)
	return os.Chdir("/")
}

// take clones the trees that the box shows, before any of them may be hidden.
func (b *builder) take() (err error) {
	if b.null, err = cloneTree(os.DevNull); err != nil {
		return fmt.Errorf("take %s: %w", os.DevNull, err)
	}
	for i, m := range b.spec.Mounts {
		switch err := b.takeFor(i, m); {
		case err == nil:
		case m.Kind == Device || m.Kind == Proc || !changed(err):
			return err
		case m.Optional:
			delete(b.piles, i)
			b.gone[i] = m.Kind != Overlay || m.Source == m.Target // else it is cold, see cache
		default:
			return &policyFault{FaultGone, err}
		}
	}
	return nil
}

// changed reports whether what was found when the box was planned is not there any more, or is
// a link by now.
func changed(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// takeFor clones what mount i shows.
func (b *builder) takeFor(i int, m Mount) (err error) {
	const attr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	switch {
	case m.Kind == Bind && m.Writable:
		b.binds[i], err = takeTree(m.Source, attr)
	case m.Kind == Bind:
		b.binds[i], err = takeTree(m.Source, attr|unix.MOUNT_ATTR_RDONLY)
	case m.Kind == Device:
		// Read-only keeps the mode of a device, not what is written to it.
		b.binds[i], err = takeTree(m.Source, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_RDONLY)
	case m.Kind == Proc:
		// Only where the host's can be seen does the kernel give another one.
		b.procs, err = newFileSystem("proc")
	case m.Kind == Overlay, m.Kind == Layers, m.Kind == Veil:
		b.piles[i], err = takeLayers(m)
	}
	return err
}

func takeTree(path string, attr uint64) (int, error) {
	fd, err := cloneTree(path)
	if err == nil {
		err = restrict(fd, "", attr)
	}
	if err != nil {
		return -1, fmt.Errorf("take %s: %w", path, err)
	}
	return fd, nil
}

func (b *builder) attach(i int, m Mount) error {
	switch m.Kind {
	case Bind, Device, Veil:
		if err := mountPoint(b.binds[i], m.Target); err != nil {
			return err
		}
		if err := moveTo(b.binds[i], m.Target); err != nil {
			return err
		}
		return b.user.take(m)
	case Tmpfs:
		return b.tmpfs(m)
	case Overlay:
		return b.cache(i, m)
	case Layers:
		return b.layers(b.binds[i], m)
	case Hide:
		if b.veiled[m.Target] {
			return nil
		}
		return b.hide(m.Target)
	case Proc:
		return b.proc(m.Target)
	case Pts:
		// A box without terminals is still a box.
		fd, err := newFileSystem("devpts", "newinstance", "", "ptmxmode", "0666", "mode", "0600")
		if err == nil && os.Mkdir(m.Target, 0o755) == nil {
			_ = moveTo(fd, m.Target)
		}
		return nil
	}
	return fmt.Errorf("unknown kind of mount")
}

// mostFiles is how many files a file system of limited size holds: empty ones take memory,
// too.
const mostFiles = "256k"

func (b *builder) tmpfs(m Mount) error {
	fd, err := attachTmpfs(m)
	if err != nil {
		return err
	}
	if !m.Writable {
		b.seals = append(b.seals, fd)
	}
	return b.user.take(m)
}

// attachTmpfs makes an empty file system in memory and attaches it.
func attachTmpfs(m Mount) (int, error) {
	mode := m.Mode
	if mode == 0 {
		mode = 0o755
	}
	options := []string{"mode", fmt.Sprintf("%04o", mode)}
	if m.Size != "" {
		options = append(options, "size", m.Size, "nr_inodes", mostFiles)
	}
	fd, err := newFileSystem("tmpfs", options...)
	if err != nil {
		return -1, err
	}
	if err := os.MkdirAll(m.Target, 0o755); err != nil {
		return -1, err
	}
	return fd, moveTo(fd, m.Target)
}

// An owner is the user whom commands run as.
type owner struct {
	uid, gid int
	other    bool // that is not the init's own: who made a thing is else who uses it
}

func ownerOf(spec Spec) owner { return owner{spec.UID, spec.GID, spec.Switch} }

// take gives the root of a mount to the user.
func (o owner) take(m Mount) error {
	if !m.Mine || !o.other {
		return nil
	}
	return os.Lchown(m.Target, o.uid, o.gid)
}

// write writes files that belong to the user.
func (o owner) write(files []File) error {
	for _, f := range files {
		if err := os.WriteFile(f.Path, []byte(f.Text), 0o644); err != nil {
			return err
		}
		if err := o.take(Mount{Target: f.Path, Mine: true}); err != nil {
			return err
		}
	}
	return nil
}

// hide puts an empty folder or file over target. What is absent, or cannot be reached
// even with the privileges of the init, has nothing to hide.
func (b *builder) hide(target string) error {
	named := target
	target, err := filepath.EvalSymlinks(named)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Lstat(target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return err
	case target != named && strings.HasPrefix(b.spec.View+"/", strings.TrimSuffix(target, "/")+"/"):
		return errors.New("it is a link to what the box shows")
	case info.IsDir():
		return b.tmpfs(Mount{Target: target, Mode: 0o555})
	}
	fd, err := unix.OpenTree(b.null, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	if err := restrict(fd, "", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return err
	}
	return moveTo(fd, target)
}

// proc shows the processes of the box only. It is read-only: for a process that is root
// on the host, /proc/sys and /proc/sysrq-trigger ask for no capability.
func (b *builder) proc(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := moveTo(b.procs, target); err != nil {
		return err
	}
	b.seals = append(b.seals, b.procs)
	// In a user namespace of their own commands would have capabilities again.
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

func (b *builder) write() error {
	for _, l := range b.spec.Links {
		if err := link(l.Target, l.Path); err != nil {
			return err
		}
	}
	return b.user.write(b.spec.Files)
}

// link makes a symbolic link, unless something stands there or the box shows the folder.
func link(target, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.Symlink(target, path)
	}
	if errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}
