// Package sandbox gives processes and files with limited reach.
//
// A [Box] holds the commands of one workspace: what they may read and change is written
// in a [Policy], and closing the box ends every process that was ever started in it. A
// [Files] reaches the files of a workspace by handle under the same policy. Where no box
// can be had, [Open] says so with [ErrNoBox] and nothing runs; [Bare] is what a person
// chose instead, and holds nothing back.
//
// One tier so far: Linux namespaces, with a small init of ours as pid 1 (package boxinit).
//
// Bounded: what a box writes in memory is 1 GiB for each of /tmp, HOME and /dev/shm and a
// quarter of the machine's for the build cache, and what [Limits] say; there are no core
// dumps. Memory, processes and disk are looked at every tenth of a second: in between a
// command can take more, and one that never maps what it takes (a memfd, a queue of
// messages, a socket's buffer), or that keeps others from looking into it, is bounded by the
// kernel's own limits only.
//
// Not held: a command that may write a folder in which there is no git directory, or none of
// the settings that [Closed] names, can make them there, for programs that obey them outside;
// [Box.Planted] tells. Those that lie deep in a large writable tree, beyond its first 5,000
// files and folders, or in node_modules, are neither found nor closed; what a command hides
// below 50,000 others that it makes is not told. A file among them that its user replaces while
// the box is open can be changed from then on; one that has a hard link in the workspace can be
// by that, which is told unless it lies in a closed folder. A socket that a program of the
// host binds once the box is open, that it bound by a relative path, or that belongs to
// another network namespace, as of a container, can be connected to where the box shows it,
// until Landlock holds that ([Held], version 9). A hidden name of the workspace, of
// [Policy.ReadOnly], of what the host mounts in another folder that is shown, or behind a link,
// that appears or is replaced once the box is open is seen there; so is, by commands that are
// root, what only root may read in /etc, /usr/local/etc and /opt and is made then, and what
// there is of that elsewhere in the system's folders. Where the kernel makes no overlay a name
// that appears or is replaced is seen everywhere.
//
// Non-goals: virtual machines; containers with a root file system of their own.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Command is one program to run.
type Command struct {
	Argv    []string
	Dir     string        // relative to the workspace, "" for its root
	Env     []string      // added to the policy's
	Stdin   *os.File      // its input, nil = none; the caller closes it, at any time after the start
	Timeout time.Duration // counted from its start; 0 = none
	Limit   int64         // bytes kept of each stream, 0 = 1 MiB; what is dropped lies in the middle, at Limit/2
	// Merge gives the command one pipe for both streams: Combined is then exactly in the
	// order of its writes, Stdout equals it and Stderr is empty. Two pipes can be read a
	// moment apart.
	Merge bool
	// Out and Err, if set, are given the streams as they come, besides what is kept of them;
	// with Merge, Out is given both. One is written to at a time. While it is, the command
	// may have to wait, and is waited for until they have taken all; what they answer is not
	// looked at. One that is ended, by its timeout or otherwise, waits for them no longer: a
	// Write that hangs may then outlive the call, and no other follows it.
	Out, Err io.Writer
}

// An Output is what a command left.
type Output struct {
	Combined, Stdout, Stderr []byte // Combined is interleaved as it came
	Dropped                  int64  // bytes missing from Combined, see [Command.Limit]
	Exit                     int    // 128 + signal when one killed it
	// Killed is why it was ended: "", "timeout", "cancelled", or a limit: "memory", "processes",
	// "disk", "output", and "unwatched" for a program that nobody may read, see [Limits.Disk].
	Killed string
	// Wanted is what a command that failed in a box may have failed for want of, for whoever
	// could run it again with more; see [Want].
	Wanted []Want
}

// Values of [Output.Killed].
const (
	killedTimeout   = "timeout"
	killedCancelled = "cancelled"
	killedOutput    = "output" // the init knows the other limits
)

// ErrEnded is wrapped by the error for a box that was closed, or whose init was killed, as
// when memory runs out. It does not come back; another one can be opened in its place.
var ErrEnded = errors.New("the box has ended")

// dirOf checks the folder a command wants to start in.
func (c Command) dirOf() (string, error) {
	if len(c.Argv) == 0 {
		return "", errors.New("run: the command is empty")
	}
	for _, s := range slices.Concat(c.Argv, c.Env) {
		if strings.ContainsRune(s, 0) {
			return "", fmt.Errorf("run %s: %w: an argument or variable holds a NUL", c.Argv[0], syscall.EINVAL)
		}
	}
	if c.Dir != "" && !filepath.IsLocal(c.Dir) {
		return "", fmt.Errorf("run %s: folder %s: %w", c.Argv[0], c.Dir, ErrOutside)
	}
	return filepath.Clean(c.Dir), nil
}
