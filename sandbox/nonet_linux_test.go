package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"skein/sandbox"
)

// helped runs a helper of the tests as a process of its own.
func helped(ctx context.Context, what string, args ...string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), helper+"="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Where the kernel cannot keep the host's abstract sockets closed, a box with the network is
// refused, and it is known beforehand; all else can be had.
func TestNetworkWithoutLandlock(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	if box.Held().Landlock >= 6 {
		if err := sandbox.ExamineNet(t.Context()); err != nil {
			t.Errorf("control: ExamineNet = %v", err)
		}
	}
	dir := t.TempDir()
	for _, what := range []string{"examine", "open"} {
		if out, err := helped(t.Context(), "without landlock", what, dir); err != nil {
			t.Errorf("%s without landlock: %v\n%s", what, err, out)
		}
	}
	for _, what := range []string{"examine network", "open with the network"} {
		out, err := helped(t.Context(), "without landlock", what, dir)
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(out, "landlock of version 6") {
			t.Errorf("%s without landlock: %v, %q, want it refused, and why", what, err, out)
		}
		if strings.Contains(out, "namespaces") {
			t.Errorf("%s without landlock says %q: namespaces are not what is missing", what, out)
		}
	}
}
