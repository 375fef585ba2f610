package boxinit

import (
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// processes lists those of the box, the init left out.
func processes() (pids []int) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	numbered(fd, func(pid int) bool {
		if pid != 1 {
			pids = append(pids, pid)
		}
		return true
	})
	return pids
}

// secondThread is a thread besides the first of a process, or the process if it has no other.
// When the first has ended, the kernel shows by its number neither memory nor files of the
// process: only by those of the others.
func secondThread(pid int) int {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return pid
	}
	defer func() { _ = unix.Close(dir) }()
	second := pid
	numbered(dir, func(thread int) bool {
		second = thread
		return thread == pid
	})
	return second
}

// numbered calls yield for the entries of a folder whose names are numbers, until it says
// no. It takes little memory, which an init has not.
func numbered(dir int, yield func(int) bool) {
	var page [4096]byte
	for {
		n, err := unix.ReadDirent(dir, page[:])
		if err != nil || n <= 0 {
			return
		}
		for rest := page[:n]; len(rest) > nameAt; {
			entry := rest[:min(int(binary.NativeEndian.Uint16(rest[lengthAt:])), len(rest))]
			rest = rest[len(entry):]
			if number, ok := leading(entry[min(nameAt, len(entry)):]); ok && !yield(number) {
				return
			}
		}
	}
}

// Where an entry of a folder has what.
const (
	lengthAt = 16
	nameAt   = 19
)

// leading is the number that a name is, which ends with a zero byte.
func leading(name []byte) (n int, ok bool) {
	for i, c := range name {
		if c == 0 {
			return n, i > 0
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return 0, false
}

// nameless adds up files that lie in memory and have no name, which no limit but the watch
// would see: they take memory without being mapped.
type nameless struct {
	seen map[uint64]bool // inodes
	left int             // descriptors that may still be looked at
}

// mostDescriptors is how many descriptors are looked at in one round. Who has more would keep the
// init from looking at anything else.
const mostDescriptors = 1 << 16

// of is how many bytes the files have that a process has open and none had before.
func (f *nameless) of(pid int) (bytes int64) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(dir) }()
	const kind = "/memfd:"
	var link [len(kind)]byte
	numbered(dir, func(fd int) bool {
		name := strconv.Itoa(fd)
		// Asked for its name first: what lies on other file systems may keep who asks waiting.
		var stat unix.Stat_t
		if n, err := unix.Readlinkat(dir, name, link[:]); err == nil && string(link[:n]) == kind && unix.Fstatat(dir, name, &stat, 0) == nil && !f.seen[stat.Ino] {
			f.seen[stat.Ino] = true
			bytes += stat.Blocks * 512
		}
		f.left--
		return f.left > 0
	})
	return bytes
}
