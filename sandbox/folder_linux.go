package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"skein/sandbox/boxinit"
)

// A keptFolder is a temporary folder that goes when this process does, even if it is killed: an
// init outside of any box makes it, and removes it when nobody holds on to it any more.
type keptFolder struct {
	path   string
	keeper *exec.Cmd
	hold   io.Closer
}

func keepFolder(ctx context.Context) (*keptFolder, error) {
	program, err := initProgram("")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, boxinit.ArgFolder)
	cmd.Args[0] = boxinit.Name
	cmd.Env = []string{"TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt at the terminal is ours to handle
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	// ctx ends the keeper by its input, so that it removes the folder first, and one that hangs
	// soon after.
	cmd.Cancel, cmd.WaitDelay = hold.Close, closeFor
	var words strings.Builder
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &keptFolder{keeper: cmd, hold: hold}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		ended := k.remove()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("make a temporary folder: %w", context.Cause(ctx))
		}
		if said := strings.TrimSpace(words.String()); said != "" {
			ended = errors.New(said)
		}
		return nil, fmt.Errorf("make a temporary folder: %w", cmp.Or(ended, err))
	}
	k.path = strings.TrimSuffix(line, "\n")
	return k, nil
}

// remove removes the folder and waits until it is gone.
func (k *keptFolder) remove() error {
	return errors.Join(k.hold.Close(), k.keeper.Wait())
}
