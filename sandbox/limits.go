package sandbox

import "fmt"

// Limits bound what the commands of a box use: 0 stands for the default, a negative number
// for no limit. A command that goes over one is ended, see [Output.Killed]; the box and its
// other commands go on.
type Limits struct {
	// Memory is what the processes of the box have of it together, bytes; by default half of
	// the machine's, see Share. The command that has most is the one that is ended. It counts
	// what they have mapped, nameless files that they hold open, and System V segments; the
	// box's own places in memory, /tmp, HOME and /dev/shm, and the same of each guest, are bounded by
	// a quarter of it each, at most 1 GiB, build caches by half of it, and so are the places of all
	// guests together: the guest that has most there is ended, see [Guest]. What lies in the buffers
	// of sockets and pipes, or is hidden on purpose where no process shows it, is not counted.
	Memory int64
	// Share is how many boxes at once the default of Memory is divided among; 0 is one. A box
	// has 2 GiB at least, which compilers need: on a small machine many boxes together can have
	// more than there is, and then the kernel ends their processes before others.
	Share int
	// Processes is how many processes and threads the box has at once; 4096 by default. The
	// command that has most is the one that is ended.
	Processes int
	// Disk is what one command writes to disk, bytes; 16 GiB by default. What is written and
	// removed again counts once it has reached the disk. Names of files do not count, and what
	// a process writes whose parent ignores its end (SIGCHLD) only as far as it was seen, every
	// tenth of a second; not at all where the kernel does not show that (SA_NOCLDWAIT). A command
	// that runs a program which nobody may read can be watched by root only: else it is ended
	// as "unwatched".
	Disk int64
	// FileSize is how large a file a command writes, bytes; 4 GiB by default. Writing more
	// fails, as on a full disk, or ends the process by SIGXFSZ.
	FileSize int64
	// Output is what one command prints, bytes, whether it is kept or not; 256 MiB by default.
	Output int64
}

const (
	defaultProcesses = 4096
	defaultDisk      = 16 << 30
	defaultFileSize  = 4 << 30
	defaultOutput    = 256 << 20
)

// Least of what a command can begin with: a shell that starts a program, and what the box itself
// writes for it.
const (
	leastMemory    = 16 << 20
	leastProcesses = 16
	leastFileSize  = 1 << 20
)

// Check returns an error with a hint where a limit is less than any command needs: it would be
// ended, or the box could not be built, with no word of why. [Open] asks this.
func (l Limits) Check() error {
	for _, of := range []struct {
		what       string
		set, least int64
	}{
		{"memory", l.Memory, leastMemory},
		{"processes", int64(l.Processes), leastProcesses},
		{"the size of a file", l.FileSize, leastFileSize},
	} {
		if of.set > 0 && of.set < of.least {
			return &policyError{
				fmt.Errorf("a limit of %d on %s is less than a command needs", of.set, of.what),
				fmt.Sprintf("give it %d at least", of.least),
			}
		}
	}
	return nil
}

// settled replaces defaults, and says 0 for no limit. Memory is the machine's, bytes.
func (l Limits) settled(memory int64) Limits {
	return Limits{
		Memory:    limit(l.Memory, share(memory/2, int64(l.Share))),
		Processes: limit(l.Processes, defaultProcesses),
		Disk:      limit(l.Disk, defaultDisk),
		FileSize:  limit(l.FileSize, defaultFileSize),
		Output:    limit(l.Output, defaultOutput),
	}
}

// leastShare is the memory that a box has among however many others, bytes, if half of the
// machine's is as much.
const leastShare = 2 << 30

// share divides memory among boxes.
func share(memory, boxes int64) int64 {
	return max(memory/max(boxes, 1), min(memory, leastShare))
}

func limit[N int | int64](set, usual N) N {
	if set == 0 {
		return usual
	}
	return max(set, 0)
}
