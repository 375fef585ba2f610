package boxinit

import (
	"bufio"
	"bytes"
	"os"
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
// and whose maker has ended goes: what a command leaves behind is not kept.
func charge(used map[uint64]*usage) {
	var unknown int64
	for _, s := range segments() {
		tag, err := tagOf(s.creator)
		if err != nil && s.attached == 0 {
			_, _ = unix.SysvShmCtl(s.id, unix.IPC_RMID, nil) // somebody was faster
			continue
		}
		if err != nil {
			tag, err = tagOf(s.last)
		}
		if u := used[tag]; err == nil && u != nil {
			u.files += s.bytes
		} else {
			unknown += s.bytes
		}
	}
	// It takes part in the sum, and only one of those who are there can have it.
	if tag, _ := most(used, func(u *usage) int64 { return u.memory + u.files }, 0); used[tag] != nil {
		used[tag].files += unknown
	}
}
