package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Box carries out git calls that read what a writer left, where a hole in git would be
// open with the box's rights and not with the user's. Nothing but the index and new
// objects comes out of it, and those are checked. Calls may overlap.
type Box interface {
	// Git carries out one call. An exit status other than 0 is no error: an error means
	// that the call was not carried out, or was ended.
	Git(ctx context.Context, c Call) (Answer, error)

	// Close ends every process of the box.
	Close() error
}

// A Reach is what the calls of a [Box] must reach of the file system, besides git itself.
// All paths are absolute and seen at the same place in the box.
type Reach struct {
	Scratch string   // a folder that is made for this box; it alone is written
	Visible []string // folders that are read
}

// A Call is one git call.
type Call struct {
	Argv  []string // the program first, by its absolute path
	Dir   string   // where it starts, absolute; "" = anywhere
	Env   []string // besides the environment that programs have there
	Stdin io.Reader
}

// An Answer is what a [Call] left.
type Answer struct {
	Stdout, Stderr []byte
	Exit           int
}

// bare carries git calls out where this program runs, with the user's rights.
type bare struct{ env []string }

// Git implements [Box].
func (b bare) Git(ctx context.Context, c Call) (Answer, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(b.env[:len(b.env):len(b.env)], c.Env...)
	cmd.Stdin = c.Stdin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// Filters are processes of git's: they end with its group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for output pipes held by a filter that left the group
	err := cmd.Run()
	a := Answer{stdout.Bytes(), stderr.Bytes(), 0}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		a.Exit, err = exit.ExitCode(), nil
	}
	if c.Dir != "" && missing(err) { // of the program, says the system, whatever is missing
		err = cmp.Or(gone(c.Dir), err)
	}
	return a, err
}

// Close implements [Box].
func (bare) Close() error { return nil }

// openBox opens the box in which a copy is read.
func (r *Repo) openBox(ctx context.Context, reach Reach) (Box, error) {
	if r.asked.Box == nil {
		return r.git.box, nil
	}
	box, err := r.asked.Box(ctx, reach)
	if box == nil {
		box = r.git.box
	}
	return box, err
}

// plain opens a file that others may have made: it follows no link and waits for nothing.
func plain(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("not a plain file")}
	}
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}
