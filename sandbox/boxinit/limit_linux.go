package boxinit

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// spareIDs is how many processes a box may have beyond the limit of its commands, so that
	// the init is not kept from starting a thread, and sees a command that goes over.
	spareIDs = 64
	// lowIDs are given to the first processes only, by the kernel's rule.
	lowIDs = 300
)

// limitProcesses bounds the processes of this namespace, and reports whether the kernel
// holds the bound. It must be called while /proc can be written.
func limitProcesses(spec Spec) (bool, error) {
	most := spec.Limits.Processes
	if most == 0 {
		return false, nil
	}
	switch {
	case kernelIs(6, 14): // before, the number was that of the whole machine
		text := strconv.Itoa(lowIDs + most + spareIDs)
		const file = "/proc/sys/kernel/pid_max"
		if err := os.WriteFile(file, []byte(text), 0); err != nil {
			return false, nil // the watch is left, see [server.check]
		}
		now, err := os.ReadFile(file)
		return strings.TrimSpace(string(now)) == text, err
	case spec.UID != 0 && kernelIs(5, 14): // before, this counted the user's processes outside, too
		n := uint64(most + spareIDs)
		return true, limitTo("processes", unix.RLIMIT_NPROC, n)
	}
	return false, nil
}

// limitObjects bounds what the kernel keeps for commands though no process has it, as far as
// it lets this process: sets of semaphores and queues of messages are root's to bound. Its
// own numbers would allow for more than the memory of most machines. It must be called while
// /proc can be written.
func limitObjects(spec Spec) {
	set := func(name, value string) { _ = os.WriteFile("/proc/sys/"+name, []byte(value), 0) } // a wish
	set("kernel/sem", "32000 32000 500 1024")
	set("kernel/msgmni", "64")
	if !spec.Net {
		const bytes = "262144" // of a connection's buffers the larger would be 6 MiB
		set("net/ipv4/tcp_wmem", "4096 16384 "+bytes)
		set("net/ipv4/tcp_rmem", "4096 16384 "+bytes)
	}
}

// kernelIs reports whether the running kernel is of that version or a later one.
func kernelIs(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// limitFiles bounds the files that commands make: no core dumps, and none of any size.
func limitFiles(most int64) error {
	if err := limitTo("core dumps", unix.RLIMIT_CORE, 0); err != nil || most == 0 {
		return err
	}
	return limitTo("file size", unix.RLIMIT_FSIZE, uint64(most))
}

func limitTo(what string, resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return fmt.Errorf("read the limit of %s: %w", what, err)
	}
	now.Max = min(now.Max, most)
	now.Cur = min(now.Cur, now.Max)
	if err := unix.Setrlimit(resource, &now); err != nil {
		return fmt.Errorf("limit %s: %w", what, err)
	}
	return nil
}

// preferCommands has the kernel take processes of boxes first when memory is short, the
// largest before the init.
func preferCommands() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // a wish
}
