package worktree

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" // it is what git calls its objects by
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// commit makes a commit in our store that depends on nothing but its tree, message and
// parents. It is dated like its first parent: merge-base walks by date, and from a commit
// older than its parent it would walk the whole history.
func (r *Repo) commit(ctx context.Context, tree, message string, parents ...string) (string, error) {
	return r.commitTo(ctx, r.objects(), tree, message, parents...)
}

// commitTo is commit for some folder with objects. A commit is a few lines of our own: for
// each that git need not write, a merge is a quarter faster, and none comes out of a box.
func (r *Repo) commitTo(ctx context.Context, objects, tree, message string, parents ...string) (string, error) {
	o, err := r.commitObject(ctx, tree, message, parents...)
	if err != nil {
		return "", err
	}
	if err := writeObject(objects, o); err != nil {
		return "", fmt.Errorf("write commit: %w", err)
	}
	return o.id, nil
}

// commitObject is the commit, which is nowhere yet.
func (r *Repo) commitObject(ctx context.Context, tree, message string, parents ...string) (object, error) {
	date := "1000000000"
	if len(parents) > 0 {
		var err error
		if date, err = r.date(ctx, parents[0]); err != nil {
			return object{}, err
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(&text, "%s skein <skein@localhost> %s +0000\n", role, date)
	}
	message = strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", "\uFFFD") // git has neither
	fmt.Fprintf(&text, "\n%s", message)
	o := r.object("commit", text.Bytes())
	r.dates.Store(o.id, date)
	return o, nil
}

// date is when a commit was made. Those of our own are known.
func (r *Repo) date(ctx context.Context, commit string) (string, error) {
	if date, known := r.dates.Load(commit); known {
		return date.(string), nil
	}
	date, err := r.git.line(ctx, r.ours(), "log", "-1", "--no-show-signature", "--format=%ct", commit)
	if err == nil {
		r.dates.Store(commit, date)
	}
	return date, err
}

// An object is one of git's that we made ourselves: a commit or a tree.
type object struct {
	kind, id string
	data     []byte
}

// object names data as git does.
func (r *Repo) object(kind string, data []byte) object {
	o := object{kind: kind, data: data}
	o.id = hex.EncodeToString(r.sum(o.whole()))
	return o
}

// sum is what the repository calls bytes by.
func (r *Repo) sum(data []byte) []byte {
	if r.format == "sha256" {
		sum := sha256.Sum256(data)
		return sum[:]
	}
	sum := sha1.Sum(data)
	return sum[:]
}

// whole is the object with what git puts before it.
func (o object) whole() []byte {
	return append(fmt.Appendf(nil, "%s %d\x00", o.kind, len(o.data)), o.data...)
}

// writeObject writes an object into a folder of them, as git does.
func writeObject(objects string, o object) error {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(o.whole())
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	folder := filepath.Join(objects, o.id[:2])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return writeWhole(filepath.Join(folder, o.id[2:]), packed.Bytes())
}
