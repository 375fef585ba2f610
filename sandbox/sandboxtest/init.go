package sandboxtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"skein/sandbox/boxinit"
)

// BuildInit builds the init of boxes into the folder of a program, as an installation has them
// beside each other. A test's own program can serve as one, too, but takes a hundred times as long
// to start under the race detector.
func BuildInit(ctx context.Context, dir string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/"+boxinit.Name, "skein/cmd/skein-init")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", boxinit.Name, err, out)
	}
	return nil
}
