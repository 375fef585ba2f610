package worktree_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/worktree"
)

// long is how many cases a suite tries: few, and fewer where it runs once more on copies
// of another kind, or all where SKEIN_LONG is set.
func long(few, all int) int {
	switch {
	case os.Getenv("SKEIN_LONG") != "":
		return all
	case os.Getenv(onOverlay) != "":
		return (few + 4) / 5
	}
	return few
}

// Whatever writers do to a tree, merging their changes in order gives the tree that git
// merge gives, and what conflicts for git conflicts for us, for the same reason.
func TestMergesLikeGit(t *testing.T) {
	l := newLab(t)
	t.Setenv("LC_ALL", "C")
	checks(t, long(10, 300))
	tally := map[string]int{}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		d := &differ{lab: l, rt: rt, tally: tally, ours: fmt.Sprintf("%s/%d", l.root, n), gits: fmt.Sprintf("%s/%d.git", l.root, n)}
		d.begin()
		r := l.openAt(d.ours, worktree.Options{})
		for range rapid.IntRange(1, 2).Draw(rt, "batches") {
			d.batch(r)
		}
		l.close(r)
		l.remove(d.ours)
		l.remove(d.gits)
	})
	t.Logf("%d histories: %v", n, tally)
	// What never came up was not compared.
	var must []string
	switch {
	case n >= 300:
		must = []string{
			"merged", worktree.KindContent, worktree.KindAddAdd, worktree.KindModifyDelete, worktree.KindRenameDelete, worktree.KindRenameEdit,
			worktree.KindRenameRename, worktree.KindDirectoryRename, worktree.KindFileDirectory, worktree.KindSymlink, worktree.KindBinary,
		}
	case n >= 10:
		must = []string{"merged"}
	}
	for _, kind := range must {
		if !t.Failed() && tally[kind] == 0 {
			t.Errorf("no history had a change of kind %q", kind)
		}
	}
}

// checks sets how many cases rapid tries in this test, unless its flag does.
func checks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
}

// A differ merges in a repository by us, and in another one by git.
type differ struct {
	*lab
	rt         *rapid.T
	ours, gits string
	tally      map[string]int
	serial     int
}

var (
	namesAtFirst = []string{
		"alpha", "be ta", "dir/gamma", "dir/del\nta", "dir/sub/épsilon", "Zeta", "other/\xff\xfeeta", "other/th\"e\\ta", "-iota", "blob", "link",
	}
	namesLater = []string{"kappa", "dir/lambda", "other/mu", "fresh dir/nu", "zeta", "KAPPA", "dir/sub/xi"}
	foldersNew = []string{"moved", "other/moved", "dir2"}
)

// begin makes both repositories with the same files.
func (d *differ) begin() {
	for _, dir := range []string{d.ours, d.gits} {
		d.check(os.MkdirAll(dir, 0o755))
		d.gitIn(dir, "init", "-q", "--template=", "-b", "main")
		d.gitIn(dir, "config", "user.name", "Ada")
		d.gitIn(dir, "config", "user.email", "ada@example.org")
		for _, name := range namesAtFirst {
			var text strings.Builder
			for i := range 12 {
				fmt.Fprintf(&text, "%q %d\n", name, i)
			}
			d.write(dir, name, text.String())
		}
		d.write(dir, "blob", "\x00blob\n")
		d.link(dir, "link", "alpha")
		d.gitIn(dir, "add", "-A")
		d.gitIn(dir, "commit", "-q", "-m", "base")
	}
}

// An edit is what somebody does to a tree; the same to the same tree.
type edit struct {
	kind, which, where, line int
	who                      string
}

// draw makes up what somebody does.
func (d *differ) draw(who string) []edit {
	var list []edit
	for range rapid.IntRange(1, 4).Draw(d.rt, "edits of "+who) {
		list = append(list, edit{
			rapid.IntRange(0, 14).Draw(d.rt, "kind"), rapid.IntRange(0, 10).Draw(d.rt, "file"), rapid.IntRange(0, 6).Draw(d.rt, "to"),
			rapid.IntRange(0, 11).Draw(d.rt, "line"), who,
		})
	}
	return list
}

func (d *differ) do(dir string, list []edit) {
	for _, e := range list {
		d.doOne(dir, e)
	}
}

func (d *differ) doOne(dir string, e edit) {
	names := slices.Sorted(maps.Keys(d.files(dir)))
	if len(names) == 0 {
		return
	}
	name, to := names[e.which%len(names)], namesLater[e.where%len(namesLater)]
	if e.kind <= 5 {
		const often = 5 // some files are everybody's
		name = names[e.which%min(len(names), often)]
	}
	at, folder := dir+"/"+name, filepath.Dir(name)
	info, err := os.Lstat(at)
	d.check(err)
	plain := info.Mode().IsRegular()
	switch e.kind {
	case 0, 1, 2: // most of what people do
		if !plain {
			return
		}
		text, err := os.ReadFile(at)
		d.check(err)
		lines := strings.SplitAfter(string(text), "\n")
		lines[e.line%min(len(lines), 4)] = fmt.Sprintln(e.who, e.line)
		d.check(os.WriteFile(at, []byte(strings.Join(lines, "")), info.Mode().Perm()))
	case 3:
		d.remove(dir, name)
	case 4, 5:
		d.move(dir, name, to)
	case 6:
		if folder != "." {
			d.move(dir, folder, foldersNew[e.where%len(foldersNew)])
		}
	case 7:
		if plain {
			d.check(os.Chmod(at, info.Mode().Perm()^0o111))
		}
	case 8:
		d.link(dir, name, e.who)
	case 9:
		d.write(dir, name, "\x00"+e.who)
	case 10:
		d.remove(dir, name)
		d.write(dir, name+"/inner", e.who)
	case 11:
		if folder != "." {
			d.remove(dir, folder)
			d.write(dir, folder, e.who)
		}
	case 12:
		d.place(dir, to)
		d.write(dir, to, strings.Repeat(fmt.Sprintln(e.who, "wrote this"), 1+e.line))
	case 13:
		if folder != "." { // and somebody else may rename it
			d.write(dir, folder+"/by "+e.who, e.who)
		}
	case 14:
		if upper := strings.ToUpper(name); folder == "." && upper != name {
			d.move(dir, name, upper)
		}
	}
}

// move renames a file or folder, unless one of the two lies in the other.
func (d *differ) move(dir, from, to string) {
	if strings.HasPrefix(from+"/", to+"/") || strings.HasPrefix(to+"/", from+"/") {
		return
	}
	d.place(dir, to)
	if _, err := os.Lstat(dir + "/" + from); err == nil { // else making room removed it
		d.rename(dir+"/"+from, dir+"/"+to)
	}
}

// place makes room for a file: nothing is at its path, and only folders above.
func (d *differ) place(dir, name string) {
	for i, c := range name {
		if c == '/' {
			if info, err := os.Lstat(dir + "/" + name[:i]); err == nil && !info.IsDir() {
				d.remove(dir, name[:i])
			}
		}
	}
	d.check(os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755))
	d.remove(dir, name)
}

// batch has some writers work at the same time, after the user did something.
func (d *differ) batch(r *worktree.Repo) {
	d.serial++
	user := d.draw("the user")
	d.do(d.ours, user)
	d.do(d.gits, user)
	d.gitIn(d.gits, "add", "-A")
	d.gitIn(d.gits, "commit", "-q", "--allow-empty", "-m", "user")
	start := d.gitIn(d.gits, "rev-parse", "HEAD")
	s := d.snapshot(r.Tree())
	onto := s.Commit
	for w := range rapid.IntRange(2, 3).Draw(d.rt, "writers") {
		name := fmt.Sprint("0.", w+1)
		edits := d.draw(name)

		ch := d.change(r, s, fmt.Sprintf("%s.%d", name, d.serial), func(dir string) { d.do(dir, edits) })
		ch.Name = name
		merged, err := r.Merge(d.Context(), onto, ch)
		var failed *worktree.ConflictError
		if err == nil {
			onto = merged
		} else if !errors.As(err, &failed) {
			d.rt.Fatalf("Merge = %v, want a tree or conflicts", err)
		}

		d.gitIn(d.gits, "checkout", "-q", "-B", name, start)
		d.do(d.gits, edits)
		d.gitIn(d.gits, "add", "-A")
		d.gitIn(d.gits, "commit", "-q", "--allow-empty", "-m", name)
		d.gitIn(d.gits, "checkout", "-q", "main")
		out, err := d.tryGit(d.gits, "merge", "-q", "-s", "ort", "--no-ff", "-m", "merge", name)
		var want []string
		gaveUp := false
		if err != nil {
			want = d.unmerged(out, start, name)
			// Some give up on some conflicts in renamed folders, or write what they do not read.
			gaveUp = strings.Contains(out, "BUG: merge-ort.c") || strings.Contains(out, "error: cache entry has null sha1")
			if gaveUp && failed == nil {
				d.rt.Errorf("changes of %s merge, where git gives up: %s", name, out)
			}
			if len(want) == 0 && !gaveUp {
				d.rt.Fatalf("git merge %s = %v, without conflicts\n%s", name, err, out)
			}
			d.gitIn(d.gits, "reset", "-q", "--hard")
			d.gitIn(d.gits, "clean", "-fdqx")
		}
		var got []string
		if failed != nil {
			for _, c := range failed.Conflicts {
				got = append(got, fmt.Sprintf("%q %s", c.Path, c.Kind))
				d.tally[c.Kind]++
			}
			if failed.Marked == "" {
				d.rt.Errorf("conflicts without a commit that shows them")
			}
		} else {
			d.tally["merged"]++
		}
		slices.Sort(got)
		if gaveUp {
			d.tally["git gave up"]++
		} else if !slices.Equal(got, want) {
			d.rt.Fatalf("conflicts of %s = %q, want %q\n%s", name, got, want, out)
		}
	}
	if _, err := r.Tree().Apply(d.Context(), s.Commit, onto); err != nil {
		d.rt.Fatalf("Apply = %v, want no error", err) // by rapid, which then says how to have the case again
	}
	ours := d.gitIn(d.ours, "--git-dir=.git/skein", "rev-parse", onto+"^{tree}")
	if theirs := d.gitIn(d.gits, "rev-parse", "HEAD^{tree}"); ours != theirs {
		d.rt.Errorf("merged tree differs from git's:\n%s", d.gitIn(d.gits, "ls-tree", "-r", "HEAD"))
	}
	same(d.rt, "tree", d.files(d.ours), d.files(d.gits))
}

// unmerged lists what git merge left unmerged, with the kind that its index and its
// words for people give.
func (d *differ) unmerged(out, start, theirs string) []string {
	type side struct{ mode, id string }
	sides := map[string]*[4]side{}
	for entry := range strings.SplitSeq(d.gitIn(d.gits, "ls-files", "-u", "-z"), "\x00") {
		info, path, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		parts := strings.Fields(info)
		if sides[path] == nil {
			sides[path] = &[4]side{}
		}
		sides[path][parts[2][0]-'0'] = side{parts[0], parts[1]}
	}
	var list []string
	for path, s := range sides {
		plain := path
		for _, aside := range []string{"~HEAD", "~" + theirs} {
			if i := strings.LastIndex(path, aside); i > 0 && (strings.HasSuffix(path, aside) || path[i+len(aside)] == '_') {
				plain = path[:i]
			}
		}
		says := func(word string) bool { return tells(out, word, path) }
		link := s[1].mode == "120000" || s[2].mode == "120000" || s[3].mode == "120000"
		known, err := d.tryGit(d.gits, "--literal-pathspecs", "ls-tree", start, "--", path)
		d.check(err)
		kind := ""
		switch {
		case strings.Contains(out, "suggesting it should perhaps be moved to "+path+".\n"), says("CONFLICT (directory rename split)"), says("CONFLICT (implicit dir rename)"):
			kind = worktree.KindDirectoryRename
		case says("warning: Cannot merge binary files"):
			kind = worktree.KindBinary
		case tells(out, "CONFLICT (distinct types)", plain):
			kind = worktree.KindSymlink
		case says("CONFLICT (file/directory)"):
			kind = worktree.KindFileDirectory
		case says("CONFLICT (rename/rename)"):
			kind = worktree.KindRenameRename
		case says("CONFLICT (rename/delete)"):
			kind = worktree.KindRenameDelete
		case link:
			kind = worktree.KindSymlink
		case s[2].mode == "" || s[3].mode == "":
			kind = worktree.KindModifyDelete
		case s[2].id == s[3].id:
			kind = worktree.KindMode
		case s[1].mode == "":
			kind = worktree.KindAddAdd
		case known == "":
			kind = worktree.KindRenameEdit
		default:
			kind = worktree.KindContent
		}
		list = append(list, fmt.Sprintf("%q %s", plain, kind))
	}
	if len(list) == 0 && strings.Contains(out, "CONFLICT (directory rename split)") {
		_, rest, _ := strings.Cut(out, "Unclear where to rename ")
		folder, _, _ := strings.Cut(rest, " to; it was")
		list = append(list, fmt.Sprintf("%q %s", folder, worktree.KindDirectoryRename))
	}
	slices.SortFunc(list, cmp.Compare[string])
	return slices.Compact(list)
}

// tells reports whether one of git's messages that begin with the word is about the path.
func tells(out, word, path string) bool {
	for _, message := range strings.Split("\n"+out, "\n"+word)[1:] {
		for _, next := range []string{"\nCONFLICT (", "\nAuto-merging ", "\nwarning: "} {
			message, _, _ = strings.Cut(message, next)
		}
		message = " " + message + " "
		for i := strings.Index(message, path); i > 0; {
			before, after := message[i-1], message[i+len(path)]
			if strings.IndexByte(" :", before) >= 0 && strings.IndexByte(" ,.:;\n", after) >= 0 {
				return true
			}
			next := strings.Index(message[i+1:], path)
			if next < 0 {
				break
			}
			i += 1 + next
		}
	}
	return false
}
