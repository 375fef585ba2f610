package boxinit

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// own is what each guest has of its own: empty file systems in memory over those that all
// would share, and in them again what the box shows there.
type own struct {
	places []Mount
	shown  []shown
	links  []Link
	files  []File
	user   owner
}

// A shown is a mount of the box by a handle: no command can put anything else there.
type shown struct {
	target string
	fd     int
}

// ownOf finds it out, once the box is built.
func ownOf(spec Spec) own {
	o := own{places: spec.Own, user: ownerOf(spec)}
	within := func(path string) bool {
		for _, p := range o.places {
			if strings.HasPrefix(path, p.Target+"/") {
				return true
			}
		}
		return false
	}
	for _, m := range spec.Mounts { // a folder before what is below it, which comes with it
		below := len(o.shown) > 0 && strings.HasPrefix(m.Target+"/", o.shown[len(o.shown)-1].target+"/")
		if !within(m.Target) || below {
			continue
		}
		// What is no mount was left out, or is there for what is below it.
		if fd, err := unix.Open(m.Target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil && mounted(fd) {
			o.shown = append(o.shown, shown{m.Target, fd})
		}
	}
	for _, l := range spec.Links {
		if within(l.Path) {
			o.links = append(o.links, l)
		}
	}
	for _, f := range spec.Files {
		if within(f.Path) {
			o.files = append(o.files, f)
		}
	}
	return o
}

// mounted reports whether something is attached just there.
func mounted(fd int) bool {
	var stat unix.Statx_t
	return unix.Statx(fd, "", unix.AT_EMPTY_PATH, 0, &stat) == nil && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// enter moves the calling thread, and what it starts, to a tree that has a guest's own places.
// They go with the last of these, and with the handles on them that are returned.
func (o own) enter() (places []int, err error) {
	defer func() {
		if err != nil {
			closeAll(places)
		}
	}()
	trees := make([]int, len(o.shown))
	for i, h := range o.shown { // in the tree that this thread is about to leave
		if trees[i], err = unix.OpenTree(h.fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
			return places, fmt.Errorf("take %s: %w", h.target, err)
		}
		defer func() { _ = unix.Close(trees[i]) }()
	}
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return places, fmt.Errorf("a tree of its own: %w", err)
	}
	for _, m := range o.places {
		fd, err := attachTmpfs(m)
		if err != nil {
			return places, fmt.Errorf("%s at %s: %w", m.Kind, m.Target, err)
		}
		places = append(places, fd)
		if err := o.user.take(m); err != nil {
			return places, err
		}
	}
	for i, h := range o.shown {
		if err := errors.Join(mountPoint(trees[i], h.target), moveTo(trees[i], h.target)); err != nil {
			return places, fmt.Errorf("show %s: %w", h.target, err)
		}
	}
	for _, l := range o.links {
		if err := link(l.Target, l.Path); err != nil {
			return places, err
		}
	}
	return places, o.user.write(o.files)
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was written through it
	}
}
