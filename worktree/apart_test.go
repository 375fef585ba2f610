package worktree_test

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/worktree"
)

// What we merge without git is what git would have made of it: the same tree, and no
// conflict, whatever was renamed on either side.
func TestMergesWithoutGitLikeGit(t *testing.T) {
	anyWay(t)
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			l := newLab(t)
			l.remove(l.root, ".git")
			l.git("init", "-q", "--template=", "-b", "main", "--object-format="+format)
			l.git("config", "user.name", "Ada")
			l.git("config", "user.email", "ada@example.org")
			base := drawing{}
			for _, name := range []string{"a", "a.b", "a-b/x", "be/ta\n\"", "be/\xff\xfe", "dir/one", "dir/two", "dir/sub/three", "dir/sub/four", "dir-x", "z/z/z"} {
				base[name] = "100644 " + strings.Repeat(name+" ", 30)
				l.write(l.root, name, strings.Repeat(name+" ", 30))
			}
			l.commit()
			asked := 0
			r := l.open(worktree.Options{Fault: func(point string) error {
				if point == "before git merge-tree" {
					asked++
				}
				return nil
			}})
			s := l.snapshot(r.Tree())
			tally := map[string]int{}
			checks(t, long(30, 500))
			rapid.Check(t, func(rt *rapid.T) {
				onto, merged := s.Commit, drawing{}
				for i := range rapid.IntRange(2, 5).Draw(rt, "changes") {
					side := base.edit(rt)
					theirs := l.imported(s.Commit, fmt.Sprintf("%d", i), base, side)
					want, err := l.tryGit(l.root, "--git-dir=.git/skein", "merge-tree", "--write-tree", "--no-messages", onto, theirs)
					asked = 0
					got, failed := r.Merge(t.Context(), onto, worktree.Change{Base: s.Commit, Commit: theirs})
					how := "by git"
					if asked == 0 {
						how = "without git"
					}
					exit, conflict := (*exec.ExitError)(nil), (*worktree.ConflictError)(nil)
					switch {
					case errors.As(err, &exit) && exit.ExitCode() != 1: // git 2.39 has merges that it dies of
						tally["git died"]++
						return
					case err != nil && !errors.As(failed, &conflict):
						rt.Fatalf("Merge %s of %v = %v, want a conflict as git has one", how, side, failed)
					case err != nil:
						tally["conflict"]++
						continue
					case failed != nil:
						rt.Fatalf("Merge %s of %v = %v, want no error", how, side, failed)
					}
					if tree := l.git("--git-dir=.git/skein", "rev-parse", got+"^{tree}"); tree != want {
						rt.Fatalf("Merge %s of %v onto %v = tree %s, want git's %s:\n%s", how, side, merged, tree, want,
							l.git("--git-dir=.git/skein", "diff-tree", "-r", "--name-status", tree, want))
					}
					tally[how]++
					onto, merged = got, side
				}
			})
			t.Log(tally)
			for _, how := range []string{"without git", "by git", "conflict"} {
				if !t.Failed() && tally[how] < 5 {
					t.Errorf("%s: %d merges, too few to tell", how, tally[how])
				}
			}
			packs, err := filepath.Glob(l.root + "/.git/skein/objects/pack/*.idx")
			l.check(err)
			l.git(append([]string{"verify-pack"}, packs...)...)
			l.close(r)
		})
	}
}

// A resolver works on a merge that failed a check, and what it makes is merged onto what was
// there before: its base comes after that.
func TestMergeOntoWhatTheBaseCameFrom(t *testing.T) {
	l := newLab(t)
	base := drawing{"a": "100644 a", "b": "100644 b"}
	l.write(l.root, "a", "a")
	l.write(l.root, "b", "b")
	l.commit()
	r := l.open(worktree.Options{})
	defer l.close(r)
	s := l.snapshot(r.Tree()).Commit
	for _, name := range []string{"a", "b", "a"} {
		one := maps.Clone(base)
		one[name] += " changed"
		merged, err := r.Merge(t.Context(), s, worktree.Change{Base: s, Commit: l.imported(s, "change of "+name, base, one)})
		if err != nil {
			t.Fatal(err)
		}
		two := maps.Clone(one)
		two[name] += " again"
		// As a resolver's is, the change is taken whole: what it started from is to be merged, too.
		if _, err := r.Merge(t.Context(), s, worktree.Change{Base: merged, Commit: l.imported(merged, "again "+name, one, two)}); err != nil {
			if conflict := (*worktree.ConflictError)(nil); !errors.As(err, &conflict) {
				t.Fatal(err)
			}
		}
	}
}

// A solution begins with the merge that it is to put right, which is not what it is merged onto: it
// brings that along, whatever it touches itself, and later merges come to their end.
func TestSolutionsBringWhatTheyBeginWith(t *testing.T) {
	l := newLab(t)
	base := drawing{"a": "100644 a\n", "b": "100644 b\n", "x": "100644 1\n2\n3\n4\n5\n"}
	for name, text := range base {
		l.write(l.root, name, strings.TrimPrefix(text, "100644 "))
	}
	l.commit()
	r := l.open(worktree.Options{})
	s := l.snapshot(r.Tree())
	merge := func(onto, from string, was drawing, edits drawing) (id string, is drawing) {
		t.Helper()
		is = maps.Clone(was)
		maps.Copy(is, edits)
		id, err := r.Merge(t.Context(), onto, worktree.Change{Base: from, Commit: l.imported(from, fmt.Sprintf("%.6s on %.6s", from, onto), was, is)})
		l.check(err)
		return id, is
	}
	onto, _ := merge(s.Commit, s.Commit, base, drawing{"x": "100644 one\n2\n3\n4\n5\n"})
	onto, _ = merge(onto, s.Commit, base, drawing{"x": "100644 1\n2\n3\n4\nfive\n"}) // by git
	bad, is := merge(onto, s.Commit, base, drawing{"a": "100644 A\n"})
	is["x"] = "100644 one\n2\n3\n4\nfive\n"
	for range 2 { // the second try comes back to where the first one was
		solved, _ := merge(onto, bad, is, drawing{"x": "100644 one\n2\n3\n4\n5\n"})
		for name, want := range map[string]string{"a": "A", "x": "one\n2\n3\n4\n5"} {
			if got := l.git("--git-dir=.git/skein", "show", solved+":"+name); strings.TrimSpace(got) != want {
				t.Errorf("%s of the solution = %q, want %q", name, got, want)
			}
		}
	}
	last, _ := merge(onto, s.Commit, base, drawing{"b": "100644 B\n"})
	if got := l.git("--git-dir=.git/skein", "show", last+":b"); strings.TrimSpace(got) != "B" {
		t.Errorf("b of the last merge = %q, want B", got)
	}
	l.close(r)
}

// A drawing is the files of a tree: mode and content.
type drawing map[string]string

func (d drawing) String() string { return fmt.Sprintf("%q", slices.Sorted(maps.Keys(d))) }

// edit makes up what a writer did.
func (d drawing) edit(rt *rapid.T) drawing {
	side := maps.Clone(d)
	for range rapid.IntRange(1, 3).Draw(rt, "edits") {
		names := slices.Sorted(maps.Keys(side))
		if len(names) == 0 {
			break
		}
		name := rapid.SampledFrom(names).Draw(rt, "file")
		to := rapid.SampledFrom([]string{"a", "dir", "new", "dir/new", "be/new", "moved/new", "a-b", "dir/sub"}).Draw(rt, "to")
		switch rapid.IntRange(0, 6).Draw(rt, "kind") {
		case 0, 1:
			side[name] += "more\n"
		case 2:
			delete(side, name)
		case 3:
			side.put(to, "100644 "+to)
		case 4:
			side.put(to, side.take(name))
		case 5: // a folder, or a file
			from := path.Dir(name)
			for _, inner := range names {
				if strings.HasPrefix(inner, from+"/") {
					side.put("moved"+strings.TrimPrefix(inner, from), side.take(inner))
				}
			}
		case 6:
			side[name] = "100755" + strings.TrimPrefix(strings.TrimPrefix(side[name], "100644"), "100755")
		}
	}
	return side
}

func (d drawing) take(name string) string {
	text := d[name]
	delete(d, name)
	return text
}

// put makes room for the file: no file is above it, and no folder in its place.
func (d drawing) put(name, text string) {
	maps.DeleteFunc(d, func(other, _ string) bool {
		return strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/")
	})
	d[name] = text
}

// imported is a commit in the store with what one made of the files of another.
func (l *lab) imported(parent, message string, from, files drawing) string {
	l.Helper()
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/drawn\nmark :1\ncommitter A <a@example.org> 1000000000 +0000\ndata %d\n%s\nfrom %s\n", len(message), message, parent)
	for name := range from {
		if _, stays := files[name]; !stays {
			fmt.Fprintf(&in, "D %s\n", octal(name))
		}
	}
	for name, text := range files {
		mode, text, _ := strings.Cut(text, " ")
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, octal(name), len(text), text)
	}
	in.WriteString("\nget-mark :1\nreset refs/heads/drawn\n\n")
	cmd := exec.CommandContext(l.Context(), "git", "--git-dir="+l.root+"/.git/skein", "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// octal quotes a name as git does.
func octal(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	return `"` + b.String() + `"`
}
