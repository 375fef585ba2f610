package boxinit

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often a command that runs is looked at. What ends sooner never is.
const watchEvery = 100 * time.Millisecond

// spareThreads is how many threads the init keeps for the time in which none can be made.
const spareThreads = 6

// reserveThreads makes the Go runtime start threads that it keeps from then on.
func reserveThreads() {
	var started, group sync.WaitGroup
	started.Add(spareThreads)
	for range spareThreads {
		group.Go(func() { // waited for below
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait()
		})
	}
	group.Wait()
}

// A usage is what the living processes of one tag have, or one process.
type usage struct {
	pids    []int
	tasks   int   // processes and threads
	memory  int64 // bytes, shared ones counted for each that has them
	written int64 // bytes, with what ended children wrote
}

// check ends the commands that are over a limit. It returns how long it took.
func (s *server) check() time.Duration {
	start := time.Now()
	used := s.used()
	for tag, u := range used {
		if most := s.limits.Disk; most > 0 && u.written+s.gone[tag] > most {
			s.end(tag, "disk")
			delete(used, tag)
		}
	}
	if tag, over := most(used, func(u *usage) int64 { return int64(u.tasks) }, int64(s.limits.Processes)); over {
		s.end(tag, "processes")
		delete(used, tag)
	}
	memory := func(u *usage) int64 { return u.memory }
	if _, over := most(used, memory, s.limits.Memory); over {
		for _, u := range used {
			u.memory = s.shares(u.pids)
		}
		if tag, over := most(used, memory, s.limits.Memory); over {
			s.end(tag, "memory")
		}
	}
	return time.Since(start)
}

// most is the tag that has most of something, and whether all together have more than the
// limit.
func most(used map[uint64]*usage, of func(*usage) int64, limit int64) (tag uint64, over bool) {
	var sum, highest int64
	for t, u := range used {
		n := of(u)
		if sum += n; n > highest {
			tag, highest = t, n
		}
	}
	return tag, limit > 0 && sum > limit
}

// end ends the command of a tag, or what belongs to none: that may be a leader, too.
func (s *server) end(tag uint64, why string) {
	var culprit *command
	for pid, c := range s.byPID {
		if c.tag == tag {
			culprit = c
		}
		if now, err := tagOf(pid); c.tag == tag || err == nil && now == tag {
			c.killed = why
		}
	}
	s.sweep(culprit)
}

// used adds up what the processes of each command use.
func (s *server) used() map[uint64]*usage {
	used := map[uint64]*usage{}
	for _, pid := range processes() {
		tag, err := tagOf(pid)
		if err != nil {
			continue // it has ended
		}
		u := used[tag]
		if u == nil {
			u = &usage{}
			used[tag] = u
		}
		tasks, memory := s.status(pid)
		u.pids = append(u.pids, pid)
		u.tasks += tasks
		u.memory += memory
		u.written += s.written(pid)
	}
	return used
}

// processes lists those of the box, the init left out.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// status reads how many threads a process has and how much memory.
func (s *server) status(pid int) (threads int, memory int64) {
	text := s.read(pid, "status")
	memory = field(text, "RssAnon:") + field(text, "RssShmem:") + field(text, "VmSwap:")
	return int(max(field(text, "Threads:"), 1)), memory << 10
}

// shares adds up the memory of processes, each page once.
func (s *server) shares(pids []int) (memory int64) {
	for _, pid := range pids {
		text := s.read(pid, "smaps_rollup")
		if len(text) == 0 { // not to be looked into
			_, rss := s.status(pid)
			memory += rss
			continue
		}
		memory += (field(text, "Pss_Anon:") + field(text, "Pss_Shmem:") + field(text, "SwapPss:")) << 10
	}
	return memory
}

// written is how much a process and its ended children have written to disk.
func (s *server) written(pid int) int64 { return bytesWritten(s.read(pid, "io")) }

func bytesWritten(text []byte) int64 {
	return max(field(text, "\nwrite_bytes:")-field(text, "cancelled_write_bytes:"), 0)
}

// read reads a file of a process. What it returns is good until the next read; it is empty
// for a process that has ended or may not be looked into.
func (s *server) read(pid int, name string) []byte {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	return s.text[:s.readAt(fd)]
}

// readAt reads the beginning of a file into s.text and returns how much that is.
func (s *server) readAt(fd int) int {
	n, err := unix.Pread(fd, s.text[:], 0)
	if err != nil {
		return 0
	}
	return n
}

// field is the number behind a name.
func field(text []byte, name string) (n int64) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	for _, c := range bytes.TrimLeft(rest, " \t") {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
