package boxinit

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A segment is System V memory. The kernel keeps it until somebody removes it, whether a
// process has it or not.
type segment struct {
	id, creator, last, attached int
	bytes                       int64
}

// segments lists those of the box.
func segments() (list []segment) {
	file, err := os.Open("/proc/sysvipc/shm")
	if err != nil {
		return nil // a kernel without them
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := bytes.Fields(lines.Bytes())
		if len(f) < 16 {
			continue
		}
		n := func(i int) int {
			n, _ := strconv.Atoi(string(f[i])) // the names of the first line are 0
			return n
		}
		list = append(list, segment{id: n(1), creator: n(4), last: n(5), attached: n(6), bytes: int64(n(14) + n(15))})
	}
	return list
}

// charge adds segments to what the commands use that made or had them. One that nobody has
// and whose command has ended goes: what a command leaves behind is not kept.
func (s *server) charge(used map[uint64]*usage) {
	makers := map[int][]uint64{}
	for _, g := range segments() {
		tags, known := s.makers[g.id]
		if tags = s.running(tags); len(tags) == 0 && (!known || g.attached > 0) {
			tags = s.makersOf(g)
		}
		if len(tags) == 0 && g.attached == 0 {
			_, _ = unix.SysvShmCtl(g.id, unix.IPC_RMID, nil) // somebody was faster
			continue
		}
		makers[g.id] = tags
		var most *usage // of several it can be, the one that has most
		for _, tag := range tags {
			if u := used[tag]; u != nil && (most == nil || u.memory+u.files > most.memory+most.files) {
				most = u
			}
		}
		if most != nil {
			most.files += g.bytes
		}
	}
	s.makers = makers
}

// makersOf are the commands that can have made a segment that was not there before, or have
// it: one, or all that run if the process that made it has ended.
func (s *server) makersOf(g segment) []uint64 {
	var all []uint64
	for _, c := range s.byPID {
		all = append(all, c.tag)
	}
	for _, pid := range []int{g.creator, g.last} {
		if pid == 0 {
			continue // nobody, and not the init, which 0 stands for elsewhere
		}
		if tag, err := tagOf(pid); err == nil && slices.Contains(all, tag) {
			return []uint64{tag}
		}
	}
	return all
}

// running are those of some commands that have not been answered for.
func (s *server) running(tags []uint64) (list []uint64) {
	for _, c := range s.byPID {
		if slices.Contains(tags, c.tag) {
			list = append(list, c.tag)
		}
	}
	return list
}
