package boxinit

import (
	"bytes"
	"errors"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often a command that runs is looked at. What ends sooner never is.
const watchEvery = 100 * time.Millisecond

// spareThreads is how many threads the init keeps for the time in which none can be made.
const spareThreads = 2

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
	pids    []int // or another thread of the process, see secondThread
	tasks   int   // processes and threads
	memory  int64 // bytes, shared ones counted for each that has them
	files   int64 // bytes in files that lie in memory and have no name, and in segments, each counted once
	written int64 // bytes, with what ended children wrote
	closed  bool  // what some process wrote cannot be read
}

// check ends the commands that are over a limit. It returns how much processor time that
// took: on a crowded machine far more time passes, and what made the crowd must not be looked
// at less often for it.
func (s *server) check() time.Duration {
	start := processorTime()
	s.checkPlaces()
	used := members()
	// First, and at once: the rest takes long for each process.
	if tag, over := most(used, func(u *usage) int64 { return int64(len(u.pids)) }, int64(s.limits.Processes)); over {
		s.end(tag, "processes")
		delete(used, tag)
	}
	s.measure(used)
	for tag, u := range used {
		switch most := s.limits.Disk; {
		case most > 0 && u.closed:
			s.end(tag, "unwatched")
		case most > 0 && u.written+s.gone[tag] > most:
			s.end(tag, "disk")
		default:
			continue
		}
		delete(used, tag)
	}
	if tag, over := most(used, func(u *usage) int64 { return int64(u.tasks) }, int64(s.limits.Processes)); over {
		s.end(tag, "processes")
		delete(used, tag)
	}
	memory := func(u *usage) int64 { return u.memory + u.files }
	if _, over := most(used, memory, s.limits.Memory); over {
		for _, u := range used {
			u.memory = s.shares(u)
		}
		if tag, over := most(used, func(u *usage) int64 { return u.memory }, s.limits.Memory); over {
			s.end(tag, "memory")
		}
	}
	return processorTime() - start
}

// processorTime is what the init has had of processors.
func processorTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) // known to every kernel
	return time.Duration(t.Nano())
}

// most is who has most of something, and whether all together have more than the limit.
func most[K comparable, V any](used map[K]V, of func(V) int64, limit int64) (who K, over bool) {
	var sum, highest int64
	for k, u := range used {
		n := of(u)
		if sum += n; n > highest {
			who, highest = k, n
		}
	}
	return who, limit > 0 && sum > limit
}

// end ends the command of a tag.
func (s *server) end(tag uint64, why string) {
	var culprit *command
	for _, c := range s.byPID {
		if c.tag == tag {
			culprit, c.killed = c, why
		}
	}
	s.sweep(culprit)
}

// members lists the processes of each command.
func members() map[uint64]*usage {
	used := map[uint64]*usage{}
	for _, pid := range processes() {
		tag, err := tagOf(pid)
		if err != nil {
			continue // it has ended
		}
		if used[tag] == nil {
			used[tag] = &usage{}
		}
		used[tag].pids = append(used[tag].pids, pid)
	}
	return used
}

// measure adds up what the processes of each command use.
func (s *server) measure(used map[uint64]*usage) {
	files := nameless{left: mostDescriptors, seen: map[uint64]bool{}}
	children, ignoring := map[int]child{}, map[int]bool{}
	for tag, u := range used {
		for i, pid := range u.pids {
			now := s.status(pid)
			if now.dead && now.threads > 1 {
				u.pids[i] = secondThread(pid)
				now.memory = s.status(u.pids[i]).memory
			}
			u.tasks += now.threads
			u.memory += now.memory
			written, closed := s.written(u.pids[i])
			if written > 0 {
				children[pid] = child{tag, now.parent, written}
			}
			if now.ignores {
				ignoring[pid] = true
			}
			u.written += written
			u.closed = u.closed || closed
			if s.limits.Memory > 0 {
				u.files += files.of(u.pids[i])
			}
		}
	}
	s.bury(used, children)
	maps.DeleteFunc(children, func(_ int, c child) bool { return !ignoring[c.parent] })
	s.unwaited = children
	s.charge(used)
}

// A child is a process, and what it and its ended children have written.
type child struct {
	tag     uint64
	parent  int
	written int64 // bytes
}

// bury counts what those wrote that have ended since the last look and that nobody waited for:
// the kernel counts it for nobody. What they wrote after that look is lost.
func (s *server) bury(used map[uint64]*usage, children map[int]child) {
	for pid, c := range s.unwaited {
		if _, alive := children[pid]; alive || used[c.tag] == nil {
			continue
		}
		if _, err := tagOf(pid); err != nil {
			s.gone[c.tag] += c.written
		}
	}
}

// A status is what the kernel tells of a process.
type status struct {
	parent, threads int
	memory          int64 // bytes
	dead            bool  // its first thread has ended
	ignores         bool  // it does not wait for its children: the kernel reaps them
}

// status reads the status of a process.
func (s *server) status(pid int) status {
	text, _ := s.read(pid, "status")
	_, ignored, _ := bytes.Cut(text, []byte("\nSigIgn:\t"))
	ignored, _, _ = bytes.Cut(ignored, []byte("\n"))
	signals, _ := strconv.ParseUint(string(ignored), 16, 64)
	return status{
		parent:  int(field(text, "\nPPid:")),
		threads: int(max(field(text, "\nThreads:"), 1)),
		memory:  (field(text, "\nRssAnon:") + field(text, "\nRssShmem:") + field(text, "\nVmSwap:")) << 10,
		dead:    bytes.Contains(text, []byte("\nState:\tZ")),
		ignores: signals&(1<<(unix.SIGCHLD-1)) != 0,
	}
}

// shares adds up the memory of a command, each page once. Which of its nameless files are
// mapped, and so among what is shared, is not known: the larger one counts.
func (s *server) shares(u *usage) (memory int64) {
	var shared int64
	for _, pid := range u.pids {
		text, err := s.read(pid, "smaps_rollup")
		if err != nil { // not to be looked into
			memory += s.status(pid).memory
			continue
		}
		memory += (field(text, "\nPss_Anon:") + field(text, "\nSwapPss:")) << 10
		shared += field(text, "\nPss_Shmem:") << 10
	}
	return memory + max(shared, u.files)
}

// written is how much a process and its ended children have written to disk, unless it is
// closed to the init: it runs a program that nobody may read.
func (s *server) written(pid int) (bytes int64, closed bool) {
	denied := func(err error) bool { return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) }
	text, err := s.read(pid, "io")
	if denied(err) {
		// Closed for a moment is a process, too, that is about to run a program: for this the
		// kernel waits until it does. One that has ended has no such file.
		if _, err := s.read(pid, "smaps_rollup"); denied(err) {
			return 0, true
		}
		text, _ = s.read(pid, "io")
	}
	return bytesWritten(text), false
}

func bytesWritten(text []byte) int64 {
	return max(field(text, "\nwrite_bytes:")-field(text, "\ncancelled_write_bytes:"), 0)
}

// read reads a file of a process. What it returns is good until the next read.
func (s *server) read(pid int, name string) ([]byte, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Pread(fd, s.text[:], 0)
	return s.text[:max(n, 0)], err
}

// field is the number behind a name. With the end of a line before it the name is not one that
// a process gave itself, which the first line may have.
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
