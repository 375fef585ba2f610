package worktree_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/worktree"
)

// How a file is merged is for its attributes to say, wherever they are set: what git merge would
// not put together line by line is a conflict, and what it would is none.
func TestMergesByAttributes(t *testing.T) {
	anyWay(t)
	for _, at := range [][2]string{
		{".gitattributes", "-merge"},
		{".gitattributes", "binary"},
		{".gitattributes", "merge=union"},
		{".gitattributes", "merge=nobody-knows"},
		{".gitattributes", "conflict-marker-size=12"},
		{"dir/.gitattributes", "-merge"},
		{".git/info/attributes", "-merge"},
		{"of the user's", "-merge"},
	} {
		t.Run(at[0]+" "+at[1], func(t *testing.T) {
			file, attribute := at[0], at[1]
			l := newLab(t)
			text := "* " + attribute + "\n"
			if filepath.Base(file) == ".gitattributes" {
				text += ".gitattributes !merge !text\n" // it is a file as well
			}
			if file == "of the user's" {
				l.write(os.Getenv("XDG_CONFIG_HOME"), "git/attributes", text)
			} else {
				l.write(l.root, file, text)
			}
			const base = "1\n2\n3\n4\n5\n6\n7\n"
			l.write(l.root, "dir/f", base)
			l.commit()
			l.git("branch", "-q", "gits")
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			onto := s.Commit
			for i, text := range []string{
				strings.Replace(base, "1", "one", 1), strings.Replace(base, "7", "seven", 1), strings.Replace(base, "1", "eins", 1),
			} {
				name := fmt.Sprint("0.", i+1)
				ch := l.change(r, s, name, func(dir string) { l.write(dir, "dir/f", text) })
				merged, err := r.Merge(t.Context(), onto, ch)

				l.git("checkout", "-q", "-b", name, "main")
				l.write(l.root, "dir/f", text)
				l.git("commit", "-q", "-a", "-m", name)
				l.git("checkout", "-q", "gits")
				out, failed := l.tryGit(l.root, "merge", "-q", "--no-ff", "-m", name, name)
				if (err == nil) != (failed == nil) {
					t.Errorf("Merge of %s = %v, git merge = %v\n%s", name, err, failed, out)
				}
				if failed != nil {
					l.git("reset", "-q", "--hard")
				}
				if err != nil {
					markers := worktree.ConflictError{Conflicts: []worktree.Conflict{{Path: "dir/f", Kind: worktree.KindContent}}}
					if strings.Contains(out, "Cannot merge binary files") {
						markers.Conflicts[0].Kind = worktree.KindBinary
					}
					if err.Error() != "merge: "+markers.Error() {
						t.Errorf("Merge of %s = %v, want %v", name, err, &markers)
					}
					continue
				}
				onto = merged
			}
			ours, gits := l.git("--git-dir=.git/skein", "rev-parse", onto+"^{tree}"), l.git("rev-parse", "gits^{tree}")
			if ours != gits {
				t.Errorf("merged tree differs from git's:\n%s", l.git("--git-dir=.git/skein", "diff-tree", "-p", gits, ours))
			}
			l.git("checkout", "-q", "main")
			// An edit of the user's own is merged by the same rules.
			l.write(l.root, "dir/f", strings.Replace(base, "4", "four", 1))
			_, err := r.Tree().Apply(t.Context(), s.Commit, onto)
			if want := attribute == "-merge" || attribute == "binary"; (err != nil) != want {
				t.Errorf("Apply onto an edit = %v, want a conflict: %t", err, want)
			}
			l.close(r)
		})
	}
}

// What writers say about how files are merged takes neither all memory nor all of the disk.
func TestTooManyAttributes(t *testing.T) {
	anyWay(t)
	l := newLab(t)
	l.write(l.root, "f", "base\n")
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	onto := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) {
		l.write(dir, "f", "one\n")
		for i := range 20 { // each as large as one may be
			l.write(dir, fmt.Sprint(i, "/.gitattributes"), strings.Repeat("# 34567\n", 1<<20/8))
		}
	}))
	_, err := r.Merge(t.Context(), onto, l.change(r, s, "0.2", func(dir string) { l.write(dir, "f", "two\n") }))
	if err == nil || !strings.Contains(err.Error(), "attribute files") {
		t.Errorf("Merge = %v, want an error about attribute files", err)
	}
	l.close(r)
}

// Trees that other programs wrote, with modes that git does not write today, merge as they do by git.
func TestMergeOfOldModes(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "f", "f\n")
	l.commit()
	blob := l.git("rev-parse", "HEAD:f")
	folder := l.treeOf("100644 x", blob)
	root := l.treeOf("100644 a.b", blob, "040000 a", folder, "100664 f", blob, "100775 x", blob, "040000 z", folder)
	l.git("reset", "-q", "--hard", l.git("commit-tree", "-m", "old", root))
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	first := l.merge(r, s.Commit, l.change(r, s, "0.1", func(dir string) { l.write(dir, "f", "changed\n") }))
	ch := l.change(r, s, "0.2", func(dir string) { l.write(dir, "z/new", "new\n") })
	second := l.merge(r, first, ch)
	got := l.git("--git-dir=.git/skein", "rev-parse", second+"^{tree}")
	if want := l.git("--git-dir=.git/skein", "merge-tree", "--write-tree", first, ch.Commit); got != want {
		t.Errorf("Merge = tree %s, want git's %s", got, want)
	}
	if out, err := l.tryGit(l.root, "--git-dir=.git/skein", "fsck", second); err != nil {
		t.Errorf("fsck of the merge = %v\n%s", err, out)
	}
	l.apply(r.Tree(), s.Commit, second)
	l.close(r)
}

// treeOf writes a tree of entries, each a mode with a name and an id, in the order that is given.
func (l *lab) treeOf(entries ...string) string {
	l.Helper()
	var in strings.Builder
	for pair := range slices.Chunk(entries, 2) {
		id, err := hex.DecodeString(pair[1])
		l.check(err)
		in.WriteString(pair[0] + "\x00" + string(id))
	}
	cmd := exec.CommandContext(l.Context(), "git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	cmd.Dir, cmd.Stdin = l.root, strings.NewReader(in.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git hash-object: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}
