package worktree_test

import (
	"bytes"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// A disk that is full, as far as large files go: nothing may be left out because of it.
func TestFullDiskIsAnError(t *testing.T) {
	if alone(t) { // the limit is one of the process, and its log of this test is a large file
		return
	}
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "s"})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	// What is no text does not get smaller in an object.
	var large strings.Builder
	for i := range uint64(1 << 18) {
		x := i * 0x9e3779b97f4a7c15
		x ^= x >> 29
		x *= 0xbf58476d1ce4e5b9
		large.Write([]byte{byte(x >> 56), byte(x >> 48), byte(x >> 40), byte(x >> 32), byte(x >> 24), byte(x >> 16), byte(x >> 8)})
	}
	for _, dir := range []string{c.Root, l.root} {
		l.write(dir, "large", large.String())
		l.write(dir, "small", "small\n")
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	l.check(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	l.check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: old.Max}))
	ch, collectErr := c.Collect(t.Context(), "work\n")
	s, snapshotErr := r.Tree().Snapshot(t.Context())
	l.check(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if collectErr == nil || !strings.Contains(collectErr.Error(), "File too large") {
		t.Errorf("Collect = %+v, %v, want git's error", ch, collectErr)
	}
	if snapshotErr == nil || !strings.Contains(snapshotErr.Error(), "File too large") {
		t.Errorf("Snapshot = %+v, %v, want git's error", s, snapshotErr)
	}
	if ch := l.collect(c); len(ch.Files) != 2 || len(ch.Left) > 0 {
		t.Errorf("Collect with space again = %+v, want both files", ch)
	}
	l.close(r)
}

func TestWhatGitRefusesIsLeftOut(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".gitattributes", "bom working-tree-encoding=UTF-16\nnobom working-tree-encoding=UTF-16LE\ncode working-tree-encoding=UTF-8-MAC-NONE\n")
	l.write(l.root, "typed", "x\n")
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "bom", "x\n")
	l.write(c.Root, "nobom", "\xff\xfex\x00")
	l.write(c.Root, "code", "x\n")
	l.fifo(c.Root, "typed")
	for _, name := range []string{"w1", "w2", "w3", "w4"} {
		l.write(c.Root, name, string(bytes.Repeat([]byte(name), 10)))
	}
	ch := l.collect(c)
	var left []string
	for _, f := range ch.Left {
		left = append(left, f.Path)
	}
	if want := []string{"bom", "code", "nobom", "typed"}; !slices.Equal(left, want) || len(ch.Files) != 4 {
		t.Errorf("Collect = %+v, want %q left and four files", ch, want)
	}
	l.close(r)
}

func TestAFilterThatFailsLeavesOutItsFile(t *testing.T) {
	l := newLab(t)
	l.userConfig("[filter \"must\"]\n\tclean = false\n\trequired\n[filter \"may\"]\n\tclean = echo error: mine >&2; false\n")
	l.write(l.root, ".gitattributes", "must filter=must\nmay filter=may\n")
	l.commit()
	l.write(l.root, "must", "x\n")
	l.write(l.root, "may", "x\n")
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	if want := []worktree.Left{{Path: "must", Reason: "must: clean filter 'must' failed"}}; !slices.Equal(s.Left, want) || s.Uncommitted != 1 {
		t.Errorf("Snapshot = %+v, want %v left and one file", s, want)
	}
	l.close(r)
}
