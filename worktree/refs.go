package worktree

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// A runRef is a ref of ours, refs/skein/<session>/<run>/<kind><name>, with what was
// asked of it.
type runRef struct {
	id     runID
	name   string
	fields []string
}

// refs lists the refs of one kind, such as kept/, of all runs. Format is of
// for-each-ref; it gives fields parted by NUL, none of them with a newline.
func (r *Repo) refs(ctx context.Context, kind, format string) ([]runRef, error) {
	out, err := r.git.run(ctx, r.ours(), nil, "for-each-ref", "--format=%(refname)%00"+format, "refs/skein/")
	if err != nil {
		return nil, err
	}
	var list []runRef
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		path := strings.SplitN(strings.TrimPrefix(parts[0], "refs/skein/"), "/", 3)
		if len(path) < 3 {
			continue
		}
		if name, ok := strings.CutPrefix(path[2], kind); ok {
			list = append(list, runRef{runID{path[0], path[1]}, name, parts[1:]})
		}
	}
	return list, nil
}

// find finds the store, which only a run makes. False: there is none, or it cannot be used.
func (r *Repo) find() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findLocked()
}

func (r *Repo) findLocked() (bool, error) {
	if r.store == "" {
		if r.store = r.findStore(); r.store == "" {
			return false, nil
		}
	}
	if err := r.secureStore(r.store); err != nil {
		return false, err
	}
	return true, nil
}

// is reports whether a person means this run by a word; "" means every run.
func (id runID) is(word string) bool {
	return word == "" || word == id.session || word == id.session+"/"+id.run
}

// missing reports whether an error says that a file, or a folder above it, is not there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
