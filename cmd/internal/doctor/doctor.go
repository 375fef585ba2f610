// Package doctor finds out what this machine has of what a run needs: by trying, not by
// reading version numbers.
//
// Non-goals: to change anything.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"

	"skein/sandbox"
	"skein/worktree"
)

// A State is how things stand.
type State string

// The states. Only what a run cannot do without is Bad.
const (
	Good State = "ok"
	Bad  State = "no"
	Note State = "note" // worth knowing
)

// A Check is one thing that was looked at.
type Check struct {
	Section string `json:"section"`
	What    string `json:"what"`
	State   State  `json:"state"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"` // of a bad one: what to do
}

// A Report is all that was looked at, in order.
type Report struct {
	Good   bool    `json:"ok"`
	Checks []Check `json:"checks"`
}

// Add adds a check. A bad one makes the report bad.
func (r *Report) Add(section, what string, s State, detail string) {
	r.Good = r.Good && s != Bad
	r.Checks = append(r.Checks, Check{Section: section, What: what, State: s, Detail: detail})
}

// Fail adds a bad check, with the hint of its error if it has one.
func (r *Report) Fail(section, what string, err error) {
	r.Good = false
	c := Check{Section: section, What: what, State: Bad, Detail: err.Error()}
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) {
		c.Hint = h.Hint()
	}
	r.Checks = append(r.Checks, c)
}

// Hint says what to do about the first bad check that has a hint, "" if none has.
func (r *Report) Hint() string {
	for _, c := range r.Checks {
		if c.Hint != "" {
			return c.Hint
		}
	}
	return ""
}

// Look adds what there is of git and of boxes, for a run in a folder.
func (r *Report) Look(ctx context.Context, dir string) {
	r.git(ctx, dir)
	r.box(ctx)
}

func (r *Report) git(ctx context.Context, dir string) {
	const section = "git"
	path, version, err := worktree.Git(ctx)
	if err != nil {
		r.Fail(section, "program", err)
		r.Checks[len(r.Checks)-1].Hint = "put git 2.38 or newer on PATH"
		return
	}
	r.Add(section, "program", Good, version+" at "+path)
	switch repo, err := worktree.Open(ctx, dir, worktree.Options{}); {
	case err == nil:
		r.Add(section, "this folder", Good, "in the repository at "+repo.Tree().Root)
	case errors.Is(err, worktree.ErrUnavailable):
		r.Add(section, "this folder", Note, "in no repository: writers work one after another in place")
	default:
		r.Fail(section, "this folder", err)
	}
}

func (r *Report) box(ctx context.Context) {
	const section = "box"
	found, err := sandbox.Examine(ctx)
	switch {
	case err == nil:
		r.Add(section, "tier", Good, found.Held.Tier)
	case errors.Is(err, sandbox.ErrNoBox):
		r.Add(section, "tier", Note, "none: readers run no commands, others only with --sandbox off")
	default:
		r.Add(section, "tier", Note, "not known: the self-test could not be made, and without it readers run no commands")
	}
	for _, s := range found.Steps {
		if s.Held {
			r.Add(section, s.What, Good, s.Detail)
		}
	}
	switch broken := len(found.Steps) - 1; {
	case err == nil:
	case broken < 0 || found.Steps[broken].Held:
		r.Fail(section, "self-test", err)
	default:
		r.Fail(section, found.Steps[broken].What, err)
		r.Checks[len(r.Checks)-1].Detail = found.Steps[broken].Detail
	}
	if err != nil {
		return
	}
	r.held(found.Held)
	if err := sandbox.ExamineLayers(ctx); err != nil {
		r.Add(section, "layers for copies", Note, "not here, so copies are checked out whole: "+err.Error())
	} else {
		r.Add(section, "layers for copies", Good, "work")
	}
	if err := sandbox.ExamineNet(ctx); err != nil {
		r.Add(section, "network for commands", Note, "not here, so --allow-net is refused: "+err.Error())
	} else {
		r.Add(section, "network for commands", Good, "with --allow-net")
	}
	for _, n := range unheld {
		if found.Held.Landlock < n.until {
			r.Add("not held", n.what, Note, n.text)
		}
	}
}

// held tells by what boxes are held besides what was tried.
func (r *Report) held(h sandbox.Held) {
	const section = "box"
	if h.Seccomp {
		r.Add(section, "system calls", Good, "filtered by seccomp")
	} else {
		r.Add(section, "system calls", Note, "not filtered")
	}
	if h.Landlock > 0 {
		r.Add(section, "landlock", Good, fmt.Sprintf("version %d", h.Landlock))
	} else {
		r.Add(section, "landlock", Note, "this kernel has none")
	}
	if h.Processes {
		r.Add(section, "number of processes", Good, "limited by the kernel, and watched")
	} else {
		r.Add(section, "number of processes", Note, "watched only: this kernel lets a fork bomb run until it is ended")
	}
	r.Add(section, "memory, disk, output", Good, "watched: a command that goes over its limit is ended")
}

// unheld is what boxes do not hold, or not before some version of Landlock.
var unheld = []struct {
	until      int
	what, text string
}{
	{always, "git directories", "a command can make new ones, and settings of agents and editors, in folders that it may change; they are told of"},
	{always, "system folders", "in /usr, /etc, /opt and some of /var all can be read that other users could read; projects in /opt beside the workspace are hidden only if they have a .git, and beside one elsewhere in /usr or /etc are not"},
	{always, "hidden names", "one that appears or is replaced after a box was opened is seen in the workspace, behind a symbolic link, and in what is mounted in a folder of the system or a --readable one"},
	{always, "hard links", "settings of agents and editors that have a second name in the workspace can be changed by that; they are told of, but not those in closed folders"},
	{always, "root's files", "for commands that run as root, those in /etc, /usr/local/etc and /opt are hidden, the first 4,000 entries; others of the system's folders, and those made after a box was opened, can be read"},
	{always, "what a person starts", "a command that may change the workspace may change build files, instructions to agents and hook manifests there, and what the configuration of git names in it (core.hooksPath, include.path)"},
	{always, "readers of one tree", "share a box, with a /tmp, a /dev/shm and a HOME each: their commands see each other's processes and have one loopback device and one set of build caches, where one can change what another one's programs obey (a config.toml of cargo's); when what lies in /tmp, /dev/shm and HOME of all is too much, the one with most loses it"},
	{always, "locks", "a command can lock (flock) any file of the workspace and of the system that it may read: who on the host waits for such a lock waits until the command ends; the locks of skein in this repository are hidden, and those of caches are copies"},
	{signals, "readers of one tree", "their commands can end each other's"},
	{always, "memory", "buffers of sockets and pipes, page tables, and what a program hides on purpose where no process shows it, are not counted"},
	{always, "disk", "names of files are not counted, and what a process writes whose parent ignores its end (SIGCHLD) only as far as it was seen"},
	{pipes, "named pipes", "a reader may write into one of the workspace that another program reads"},
	{paths, "sockets by path", "those that appear after a box was opened can be connected to where the box shows them"},
}

// Versions of Landlock that brought something.
const (
	pipes   = 2
	signals = 6
	paths   = 9
	always  = math.MaxInt
)
