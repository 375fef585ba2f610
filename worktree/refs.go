package worktree

import (
	"context"
	"errors"
	"fmt"
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
	err    error // why it could not be answered, instead of the fields
}

// refs lists the refs of one kind, such as kept/, of all runs. Format is of
// for-each-ref; it gives fields parted by NUL, none of them with a newline.
func (r *Repo) refs(ctx context.Context, kind, format string) ([]runRef, error) {
	answers, err := r.askRefs(ctx, format, "refs/skein/")
	singly := exitOf(err) > 0 // git stopped at the first one whose object it cannot read
	if singly {
		answers, err = r.askRefs(ctx, "%(objectname)", "refs/skein/")
	}
	if err != nil {
		return nil, err
	}
	var list []runRef
	for _, answer := range answers {
		path := strings.SplitN(strings.TrimPrefix(answer[0], "refs/skein/"), "/", 3)
		if len(path) < 3 {
			continue
		}
		name, ok := strings.CutPrefix(path[2], kind)
		if !ok {
			continue
		}
		ref := runRef{id: runID{path[0], path[1]}, name: name, fields: answer[1:]}
		if singly {
			one, err := r.askRefs(ctx, format, answer[0])
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case err != nil:
				ref.err = fmt.Errorf("%s is on %s, which cannot be read: %w", answer[0], answer[1], err)
			case len(one) != 1:
				continue // it went meanwhile
			default:
				ref.fields = one[0][1:]
			}
		}
		list = append(list, ref)
	}
	return list, nil
}

// askRefs asks git about each ref below a name, or of that name; the answers begin with the
// whole name.
func (r *Repo) askRefs(ctx context.Context, format, under string) (answers [][]string, err error) {
	out, err := r.git.run(ctx, r.ours(), nil, "for-each-ref", "--format=%(refname)%00"+format, under)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		answers = append(answers, strings.Split(strings.TrimSuffix(line, "\n"), "\x00"))
	}
	return answers, nil
}

// find finds the store, which only a run makes. False: there is none, or it cannot be used.
func (r *Repo) find() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findLocked()
}

func (r *Repo) findLocked() (bool, error) {
	if r.lease == nil && gone(r.store) != nil {
		r.store = ""
	}
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
