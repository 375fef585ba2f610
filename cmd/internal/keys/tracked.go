package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// trackedTime is how long git may take to say whether it tracks one file.
const trackedTime = 10 * time.Second

// tracked reports whether git tracks the .env of a folder. Outside of a repository nothing is
// tracked; inside of one only git's own word counts.
func tracked(ctx context.Context, dir string) (bool, error) {
	if !inRepository(dir) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, trackedTime)
	defer cancel()
	// The repository's configuration could name a program that git would start to look for changes.
	c := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--", ".env")
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var stderr strings.Builder
	c.Stderr = &stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return false, nil
	case errors.As(err, &exit):
		line, _, _ := strings.Cut(stderr.String(), "\n")
		return false, fmt.Errorf("git: %s", line)
	}
	return false, err
}

func inRepository(dir string) bool {
	if os.Getenv("GIT_DIR") != "" {
		return true
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
