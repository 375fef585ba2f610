package boxinit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// tidy removes a folder. It is run as a command of the box: it can do what its commands can,
// and be ended when there is no end to what it finds.
func tidy(args []string) {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "skein-init: tidy: want one folder")
		os.Exit(2)
	}
	_ = filepath.WalkDir(args[0], func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // else what is in it could not be removed
		}
		return nil
	})
	if err := os.RemoveAll(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "skein-init:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
