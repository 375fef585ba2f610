// Package keys finds the keys of providers: in the environment, or else in an untracked .env
// of the workspace, which may hold keys and nothing else.
//
// A .env never says where to send anything. One that git tracks is a stranger's and supplies
// nothing. Whatever it is, the secrets in it are known to [Secrets], so that they are masked.
package keys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"skein/tools/mask"
)

// A Ring is where keys are looked up. It is not changed once made.
type Ring struct {
	getenv func(string) string
	file   map[string]string
	fault  error // of the file; only who needs it is told

	// Notice says why the .env there is was left alone; "" if it was not.
	Notice string
}

// Open reads the .env of a folder, if it has one. It never fails: what is wrong with the file
// concerns only who needs a key of it. Getenv is as [os.Getenv].
func Open(ctx context.Context, dir string, getenv func(string) string) *Ring {
	r := &Ring{getenv: getenv}
	data, err := read(dir, sizeLimit)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, errNoFile):
		return r
	case err != nil:
		r.Notice = ".env was left alone: " + err.Error()
		return r
	}
	if tracked, err := tracked(ctx, dir); err != nil {
		r.Notice = ".env was left alone: whether git tracks it could not be found out: " + err.Error()
		return r
	} else if tracked {
		r.Notice = ".env was left alone: git tracks it, and keys do not belong there"
		return r
	}
	r.file, r.fault = parse(data)
	return r
}

// Get returns the value of a variable: the environment's before the file's, "" if neither has
// it. A file with a fault is an error, a [*Error], where the environment has no such variable.
func (r *Ring) Get(name string) (string, error) {
	if v := r.getenv(name); v != "" {
		return v, nil
	}
	if r.fault != nil {
		return "", r.fault
	}
	return r.file[name], nil
}

// Secrets returns what is to be masked: what looks like a secret by its name in the
// environment and in the .env of a folder, tracked or not, faulty or not; and the values of
// the variables named, whatever they look like.
func Secrets(dir string, environ []string, variables ...string) []string {
	all := mask.FromEnviron(environ, variables...)
	if data, err := read(dir, secretsLimit); err == nil {
		all = append(all, mask.FromEnviron(entries(data), variables...)...)
		all = append(all, words(data)...)
	}
	return all
}

var errNoFile = errors.New("no regular file")

// sizeLimit is how large a .env may be that keys are taken from: a file of keys has a few
// lines. What is to be masked is looked for in larger ones too.
const (
	sizeLimit    = 64 << 10
	secretsLimit = 4 << 20
)

func read(dir string, limit int64) ([]byte, error) {
	path := filepath.Join(dir, ".env")
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile // a folder of this name is Python's
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("it is larger than %d KiB", limit>>10)
	}
	return os.ReadFile(path)
}
