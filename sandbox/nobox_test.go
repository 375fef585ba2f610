package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// The hint of a box that could not be opened is about what went wrong.
func TestNoBoxHints(t *testing.T) {
	start := func(errno syscall.Errno) error {
		return fmt.Errorf("start: %w", &fs.PathError{Op: "fork/exec", Path: "/init", Err: errno})
	}
	for _, row := range []struct {
		cause      error
		want, deny string
	}{
		{start(syscall.EPERM), "user namespaces", "ulimit"},
		{start(syscall.ENOSPC), "user namespaces", "ulimit"},
		{start(syscall.ENOSYS), "Linux 5.12", "namespaces"},
		{start(syscall.EAGAIN), "ulimit -u", "namespaces"},
		{start(syscall.ENOENT), "skein-init", "namespaces"},
		{fmt.Errorf("control socket: %w", syscall.EMFILE), "ulimit -n", "namespaces"},
		{errors.New("the init is another one"), "see skein doctor, or", "namespaces"},
		{fmt.Errorf("mount: %w", syscall.EPERM), "see skein doctor, or", "namespaces"},
		{fmt.Errorf("%w: landlock", ErrNoNet), "--allow-net", "namespaces"},
	} {
		err := &noBox{row.cause}
		if got := err.Hint(); !strings.Contains(got, row.want) || strings.Contains(got, row.deny) {
			t.Errorf("Hint for %v = %q, want %q and not %q", row.cause, got, row.want, row.deny)
		}
		if !errors.Is(err, ErrNoBox) {
			t.Errorf("%v does not wrap ErrNoBox", err)
		}
	}
}
