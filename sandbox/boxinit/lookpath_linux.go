package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds the program a command names, on the command's PATH and from its folder.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return executable(name, dir)
	}
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	denied := false
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // a program of the workspace is named with its path, not found by chance
		}
		found, err := executable(filepath.Join(folder, name), dir)
		if err == nil {
			return found, nil
		}
		denied = denied || errors.Is(err, fs.ErrPermission)
	}
	if denied {
		return "", fmt.Errorf("%s: %w", name, unix.EACCES)
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
