package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skein/worktree"
)

// Whatever writers do, two copies of a snapshot, one made in each way, collect the same.
// Their own snapshots make the same copies, and what is applied to them leaves the same.
func TestBothWaysCollectTheSame(t *testing.T) {
	needLayers(t)
	seeds := 12
	if s, err := strconv.Atoi(os.Getenv("SKEIN_TEST_SEEDS")); err == nil {
		seeds = s
	}
	l := newLab(t)
	l.dirty()
	l.write(l.root, "a/b/c/.gitignore", "*.tmp\n!kept.tmp\n")
	l.write(l.root, "a/b/c/file", "file\n")
	for i := range 30 {
		l.write(l.root, fmt.Sprintf("a/d%d/f%d", i%3, i), fmt.Sprintf("%d\n", i))
	}
	kinds := map[string]int{}
	for seed := range seeds {
		edit := func(dir string, salt uint64) {
			e := &editor{lab: l, dir: dir, random: rand.New(rand.NewPCG(uint64(seed), salt)), kinds: kinds}
			for range 12 {
				e.step()
			}
		}
		var seen [2]string
		for i, way := range []string{worktree.Overlay, worktree.Fresh} {
			seen[i] = l.bothLevels(way, fmt.Sprintf("s%d-%s", seed, way), edit)
		}
		layers, fresh := strings.Split(seen[0], "\n"), strings.Split(seen[1], "\n")
		for i := range min(len(layers), len(fresh)) {
			if layers[i] != fresh[i] {
				t.Errorf("seed %d: by layers %s\nfresh %s", seed, layers[i], fresh[i])
			}
		}
	}
	t.Logf("%d seeds: %v", seeds, kinds)
}

// bothLevels edits a copy, snapshots it, edits a copy of that, applies its change to the
// first one, and describes all that came out.
func (l *lab) bothLevels(way, session string, edit func(dir string, salt uint64)) string {
	l.Helper()
	r := l.open(worktree.Options{Session: session, Backend: way, Layers: func(context.Context) error { return nil }})
	var out strings.Builder
	tell := func(ch worktree.Change) {
		fmt.Fprintf(&out, "\n%s %+v\nleft %+v\n", l.git("--git-dir=.git/skein", "rev-parse", ch.Commit+"^{tree}"), ch.Files, ch.Left)
	}
	s := l.snapshot(r.Tree())
	c := l.copy(r, s, "0.1")
	edit(c.Root, 1)
	tell(l.collect(c))
	inner, err := c.Tree().Snapshot(l.Context())
	l.check(err)
	nest := l.copy(r, inner, "0.1.1")
	fmt.Fprintf(&out, "copy of it: %v\n", l.files(nest.Root))
	edit(nest.Root, 2)
	ch := l.collect(nest)
	tell(ch)
	_, err = c.Tree().Apply(l.Context(), inner.Commit, ch.Commit)
	fmt.Fprintf(&out, "apply: %v\nall: %v\n", errors.Unwrap(err), l.files(c.Root))
	tell(l.collect(c))
	l.drop(nest)
	l.drop(c)
	l.close(r)
	return out.String()
}

// An editor makes changes at random.
type editor struct {
	*lab
	dir    string
	random *rand.Rand
	kinds  map[string]int
}

func (e *editor) step() {
	e.Helper()
	names := e.list()
	pick := func() string { return names[e.random.IntN(len(names))] }
	name := pick()
	at := filepath.Join(e.dir, name)
	info, err := os.Lstat(at)
	e.check(err)
	kind := []string{
		"write", "append", "remove", "replace", "link", "mode", "rename", "new", "ignored", "rules", "attributes",
		"nested", "secret", "touch", "again", "same",
	}[e.random.IntN(16)]
	e.kinds[kind]++
	text := fmt.Sprintf("%d\n%d\n", e.random.IntN(5), e.random.IntN(5))
	folder := name
	if !info.IsDir() {
		folder = path.Dir(name)
	}
	switch kind {
	case "write":
		if info.Mode().IsRegular() {
			e.check(os.WriteFile(at, []byte(text), 0o644))
		}
	case "append":
		if info.Mode().IsRegular() {
			f, err := os.OpenFile(at, os.O_APPEND|os.O_WRONLY, 0)
			e.check(err)
			_, err = f.WriteString(text)
			e.check(err)
			e.check(f.Close())
		}
	case "remove":
		e.remove(e.dir, name)
	case "replace": // a file by a folder, a folder by a file
		e.remove(e.dir, name)
		if info.IsDir() {
			e.write(e.dir, name, text)
		} else {
			e.write(e.dir, name+"/inside", text)
		}
	case "again": // a folder by another one
		if info.IsDir() {
			e.remove(e.dir, name)
			e.write(e.dir, name+"/only", text)
		}
	case "same": // removed and made again as it was
		if info.Mode().IsRegular() {
			old, err := os.ReadFile(at)
			e.check(err)
			e.writeMode(e.dir, name, string(old), info.Mode().Perm())
		}
	case "link":
		e.remove(e.dir, name)
		e.link(e.dir, name, pick())
	case "mode":
		if info.Mode().IsRegular() {
			e.check(os.Chmod(at, info.Mode().Perm()^0o111))
		}
	case "rename":
		to := name + fmt.Sprint("-", e.random.IntN(9))
		if _, err := os.Lstat(filepath.Join(e.dir, to)); err != nil && info.Mode()&os.ModeSymlink == 0 {
			e.rename(at, filepath.Join(e.dir, to))
		}
	case "new":
		e.write(e.dir, path.Join(folder, fmt.Sprint("new", e.random.IntN(9)), "x"), text)
	case "ignored":
		e.write(e.dir, path.Join(folder, fmt.Sprint(e.random.IntN(9), ".tmp")), text)
		e.write(e.dir, path.Join(folder, fmt.Sprint(e.random.IntN(9), ".log")), text)
	case "rules":
		e.write(e.dir, path.Join(folder, ".gitignore"), []string{"new1\n", "*.tmp\n", "!*.log\n", "x\n"}[e.random.IntN(4)])
	case "attributes": // not for files with CRs: whether git looks at unchanged ones depends on the clock
		e.write(e.dir, path.Join(folder, ".gitattributes"), fmt.Sprintf("*.%d text\n", e.random.IntN(5)))
	case "nested":
		e.write(e.dir, path.Join(folder, "nested/.git/HEAD"), "ref: refs/heads/main\n")
		e.write(e.dir, path.Join(folder, "nested/.git/objects/x"), "")
		e.write(e.dir, path.Join(folder, "nested/.git/refs/x"), "")
		e.write(e.dir, path.Join(folder, "nested/file"), text)
	case "secret":
		e.write(e.dir, path.Join(folder, ".env"), text)
	case "touch":
		if info.Mode().IsRegular() {
			e.check(os.Chtimes(at, info.ModTime(), info.ModTime()))
		}
	}
}

// list names all files and folders, in order.
func (e *editor) list() []string {
	e.Helper()
	var names []string
	e.check(filepath.WalkDir(e.dir, func(at string, d os.DirEntry, err error) error {
		name := strings.TrimPrefix(at, e.dir+"/")
		if name == ".git" && d.IsDir() || strings.Contains(name, "nested") && d.IsDir() {
			return filepath.SkipDir
		}
		if at != e.dir {
			names = append(names, name)
		}
		return err
	}))
	slices.Sort(names)
	return names
}

// Rules and attributes that a writer did not touch lie below its layer; git obeys them.
func TestRulesBelowTheLayer(t *testing.T) {
	needLayers(t)
	l := newLab(t)
	l.write(l.root, ".gitignore", "*.log\n")
	l.write(l.root, "a/.gitignore", "!kept.log\n/here\n")
	l.write(l.root, "a/.gitattributes", "*.crlf text eol=crlf\n")
	l.write(l.root, "a/b/old.crlf", "1\r\n")
	l.commit()
	r := l.open(worktree.Options{Backend: worktree.Overlay, Layers: func(context.Context) error { return nil }})
	s := l.snapshot(r.Tree())
	for _, test := range []struct {
		name string
		edit func(dir string)
		want []string // of all files
		blob string
	}{
		{"untouched", func(string) {}, []string{"a/b/new.crlf", "a/b/old.crlf", "a/kept.log"}, "1\n2\n"},
		{"deleted", func(dir string) { l.remove(dir, "a/.gitignore", "a/.gitattributes") }, []string{
			"a/.gitattributes", "a/.gitignore", "a/b/new.crlf", "a/b/old.crlf", "a/here",
		}, "1\r\n2\r\n"},
		{"folder made anew", func(dir string) {
			l.remove(dir, "a")
			l.write(dir, "a/z", "z\n")
		}, []string{"a/.gitattributes", "a/.gitignore", "a/b/new.crlf", "a/b/old.crlf", "a/here", "a/z"}, "1\r\n2\r\n"},
	} {
		c := l.copy(r, s, strings.ReplaceAll(test.name, " ", "-"))
		test.edit(c.Root)
		for _, name := range []string{"a/b/old.crlf", "a/b/new.crlf"} {
			l.write(c.Root, name, "1\r\n2\r\n")
		}
		for _, name := range []string{"a/kept.log", "a/here", "out.log", "a/out.log"} {
			l.write(c.Root, name, "log\n")
		}
		ch := l.collect(c)
		var got []string
		for _, f := range ch.Files {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: changed %q, want %q", test.name, got, test.want)
		}
		if got := l.git("--git-dir=.git/skein", "cat-file", "blob", ch.Commit+":a/b/new.crlf") + "\n"; got != test.blob {
			t.Errorf("%s: blob = %q, want %q", test.name, got, test.blob)
		}
		l.drop(c)
	}
	l.close(r)
}
