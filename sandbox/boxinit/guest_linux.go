package boxinit

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A guest is one of several users of a box, or the box itself, which has no places.
type guest struct {
	launcher
	places []int // the file systems in memory that it has of its own
}

// guest is the one of a name. It is made for its first command.
func (s *server) guest(name string) (guest, error) {
	if g, known := s.guests[name]; known {
		return g, nil
	}
	var g guest
	var err error
	g.launcher, _, err = newLauncher(func() (err error) {
		g.places, err = s.own.enter()
		return err
	}, s.restraint)
	if err != nil {
		closeAll(g.places)
		return guest{}, fmt.Errorf("guest %s: %w", name, err)
	}
	s.guests[name] = g
	return g, nil
}

// leave gives up what a guest has, if it is there: its places go with the last of its processes.
func (s *server) leave(name string) {
	if g, known := s.guests[name]; known {
		close(g.launcher)
		closeAll(g.places)
		delete(s.guests, name)
	}
}

// placesShare is the part of a box's memory that lies in the places of all guests together.
// One guest can fill two of its own, which are a quarter each.
const placesShare = 2

// checkPlaces keeps the places of all guests together within their part of the memory. Who has
// most there is treated as who leaves, whether it runs something or not: its commands are ended,
// and the next one finds empty places. To end commands alone would give nothing back.
func (s *server) checkPlaces() {
	taken := map[string]int64{}
	for name, g := range s.guests {
		for _, fd := range g.places {
			taken[name] += takenIn(fd)
		}
	}
	name, over := most(taken, func(n int64) int64 { return n }, s.limits.Memory/placesShare)
	if !over {
		return
	}
	for _, c := range s.byPID {
		if c.guest == name {
			c.killed = "memory"
			s.sweep(c)
		}
	}
	s.leave(name)
}

// takenIn is the memory that a file system takes, bytes: empty files take some, too, which the
// kernel counts as a kibibyte each.
func takenIn(fd int) int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree)*st.Bsize + int64(st.Files-st.Ffree)<<10
}
