package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// ofBox are folders that a box has of its own.
var ofBox = []string{"/tmp", "/run", "/dev", "/proc"}

// CheckReadable returns the paths of a [Policy.Readable] absolute. It refuses those that are
// everything, nothing of the host's, above homes, or places of secrets, with a hint; env is as
// for [Policy.Env]. [Open] does the same.
func CheckReadable(paths, env []string) (list []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	hidden := secrets(env)
	for _, path := range paths {
		fault := func(hint string, cause error) ([]string, error) {
			return nil, &policyError{fmt.Errorf("readable path %s: %w", path, cause), hint}
		}
		if path == "" {
			return fault("name a file or a folder, . for this one", errors.New("it is empty"))
		}
		if path, err = filepath.Abs(path); err != nil {
			return fault("name it by its absolute path", err)
		}
		found, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fault("name a file or a folder that exists", cause(err))
		}
		info, err := os.Stat(found)
		holds := func(path string) bool { return path != found && within(path, found) }
		switch {
		case err != nil || !info.IsDir() && !info.Mode().IsRegular():
			return fault("name a file or a folder", errors.New("it is neither a file nor a folder"))
		case found == "/":
			return fault("name the folder in it that a command needs", errors.New("that is everything"))
		case slices.Contains(ofBox, found) || within(found, "/dev") || within(found, "/proc") || within(found, "/sys"):
			return fault("name the folder in it that a command needs", errors.New("the box has its own"))
		case holds("/home/x") || slices.ContainsFunc(homesOf(env), holds):
			return fault("name a home, or the folder in it that a command needs", errors.New("there are homes in it"))
		case slices.ContainsFunc(hidden, func(secret string) bool { return within(found, secret) }):
			return fault("copy what a command needs of it to the workspace", errors.New("no box shows places of secrets"))
		}
		list = append(list, path)
	}
	return list, nil
}
