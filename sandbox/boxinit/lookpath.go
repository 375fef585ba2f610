package boxinit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// LookPath finds the program that name means to a command that starts in dir with env.
// Its errors wrap the kernel's for what is absent or may not be executed.
func LookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return executable(name, dir)
	}
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	denied := ""
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // a program of the workspace is named with its path, not found by chance
		}
		full := filepath.Join(folder, name)
		if info, err := os.Stat(full); err != nil || info.IsDir() {
			continue
		}
		if unix.Access(full, unix.X_OK) == nil {
			return full, nil
		}
		denied = full
	}
	if denied != "" {
		return "", fmt.Errorf("%s: %w", denied, unix.EACCES)
	}
	return "", fmt.Errorf("%s: not found on PATH: %w", name, unix.ENOENT)
}

func executable(name, dir string) (string, error) {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, full)
	}
	info, err := os.Stat(full)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s: %w", name, unix.EISDIR)
	}
	if err := unix.Access(full, unix.X_OK); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return full, nil
}
