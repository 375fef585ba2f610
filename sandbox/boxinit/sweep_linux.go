package boxinit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// tags tells the descendants of one command from those of another.
//
// A process that left its session and whose parent has died shows no trace of where it
// came from. So each command is started with a hard limit that no other had before: the
// bytes of POSIX message queues, which no program minds. Every descendant inherits it, and
// none can change it: the second filter of commands denies that.
type tags struct {
	last uint64
}

// mostTags is the kernel's own default for this limit, and so how many commands a box
// can run.
const mostTags = 819200

func newTags() (*tags, error) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &l); err != nil {
		return nil, fmt.Errorf("read the limit of message queues: %w", err)
	}
	return &tags{last: min(l.Max, mostTags)}, nil
}

// next makes the init carry the next tag, for the command that is started now.
func (t *tags) next() (uint64, error) {
	if t.last == 0 {
		return 0, fmt.Errorf("this box has run all the commands it can: %w", unix.EAGAIN)
	}
	l := unix.Rlimit{Cur: t.last - 1, Max: t.last - 1}
	if err := unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &l); err != nil {
		return 0, fmt.Errorf("tag the command: %w", err)
	}
	t.last--
	return t.last, nil
}

// tagOf reads the tag of a process.
func tagOf(pid int) (uint64, error) {
	var l unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &l)
	return l.Max, err
}

// sweepFor bounds how long the init fights processes that multiply. Those that are left
// end with the box.
const sweepFor = 1500 * time.Millisecond

// sweep ends every process of command c, if any, and those that belong to no command.
func (s *server) sweep(c *command) {
	keep := map[uint64]bool{}
	for _, other := range s.byPID {
		if other != c {
			keep[other.tag] = true
		}
	}
	// At least once, however long this process was kept from running.
	for end := time.Now().Add(sweepFor); ; time.Sleep(200 * time.Microsecond) {
		var left bool
		if len(keep) == 0 {
			// The kernel ends all at once: none of them can start another meanwhile.
			left = !errors.Is(unix.Kill(-1, unix.SIGKILL), unix.ESRCH)
		} else {
			left = killStrays(keep, end)
		}
		s.reap()
		if !left || time.Now().After(end) {
			return
		}
	}
}

// killStrays kills the processes whose tag is not kept, and reports whether there were any.
func killStrays(keep map[uint64]bool, end time.Time) bool {
	// Stopped first, so that none can start another while the rest is being found.
	for stopped := map[int]bool{}; ; {
		fresh := 0
		for _, pid := range strays(keep) {
			if !stopped[pid] {
				fresh++
				stopped[pid] = true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if fresh == 0 || time.Now().After(end) {
			break
		}
	}
	left := strays(keep)
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(left) > 0
}

// strays lists the living processes but the init whose tag is not kept.
func strays(keep map[uint64]bool) (pids []int) {
	for _, pid := range processes() {
		tag, err := tagOf(pid)
		if errors.Is(err, unix.ESRCH) || err == nil && keep[tag] || zombie(pid) {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// zombie reports whether a process has ended and waits for its parent, which is told by
// its empty command line less surely than by its state.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	// pid (name) state: the name may hold anything, a closing bracket too.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) <= threadsAt || f[0][0] != 'Z' && f[0][0] != 'X' {
		return false
	}
	// A process whose first thread alone has ended has this state, too, and lives.
	threads, err := strconv.Atoi(string(f[threadsAt]))
	return err == nil && threads <= 1
}

// threadsAt is where stat has the number of threads, counted from the state.
const threadsAt = 17
