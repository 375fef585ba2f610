package sandbox

import (
	"bufio"
	"context"
	"errors"
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
	// ctx ends a wait, not the keeper before it has removed the folder.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, boxinit.ArgFolder)
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
	var words strings.Builder
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &keptFolder{keeper: cmd, hold: hold}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = k.remove() // what it said tells more
		return nil, errors.New("make a temporary folder: " + strings.TrimSpace(words.String()))
	}
	k.path = strings.TrimSuffix(line, "\n")
	return k, nil
}

// remove removes the folder and waits until it is gone.
func (k *keptFolder) remove() error {
	return errors.Join(k.hold.Close(), k.keeper.Wait())
}
