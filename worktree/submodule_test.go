package worktree_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"skein/worktree"
)

// modules makes the repository with a submodule in a submodule, both checked out, and with
// what must not run in their git directories.
func (l *lab) modules() (marker string) {
	l.Helper()
	l.write(l.root, "a", "a\n")
	l.commit()
	made := func(inner string) string {
		dir := l.TempDir()
		l.gitIn(dir, "init", "-q", "--template=", "-b", "main")
		l.write(dir, "f", "f\n")
		l.write(dir, "d/x.up", "x\n")
		l.write(dir, ".gitattributes", "*.up filter=evil\n")
		l.link(dir, "link", "f")
		if inner != "" {
			l.gitIn(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "in")
		}
		l.gitIn(dir, "add", "-A")
		l.gitIn(dir, "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x")
		return dir
	}
	l.fresh = "it has a submodule"
	l.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", made(made("")), "sub")
	l.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	l.commit()
	marker = l.TempDir() + "/ran"
	for _, dir := range []string{"sub", "sub/in"} {
		git := l.gitIn(l.root+"/"+dir, "rev-parse", "--absolute-git-dir")
		l.writeMode(git, "hooks/post-checkout", "#!/bin/sh\ntouch "+marker+"\n", 0o755)
		for _, key := range []string{"filter.evil.smudge", "filter.evil.clean", "core.fsmonitor", "core.alternateRefsCommand"} {
			l.gitIn(l.root+"/"+dir, "config", key, "touch "+marker+"; cat")
		}
	}
	l.gitIn(l.root+"/sub", "status")
	if _, err := os.Lstat(marker); err != nil {
		l.Fatal("what is configured does not run by itself: this proves nothing")
	}
	return marker
}

// inModules drops the .git of submodules.
func inModules(files map[string]string) map[string]string {
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "/.git") })
	return files
}

func TestSubmodulesComeAlong(t *testing.T) {
	commitIn := func(l *lab, dir string) {
		l.gitIn(l.root+"/"+dir, "-c", "user.name=x", "-c", "user.email=x", "-c", "filter.evil.clean=", "-c", "core.fsmonitor=", "commit", "-q", "-a", "-m", "x")
	}
	for _, test := range []struct {
		name string
		do   func(l *lab) // to the parent
		left []worktree.Left
		skip []string // what differs in the copy
	}{
		{"clean", func(*lab) {}, nil, nil},
		{"at another commit", func(l *lab) { l.write(l.root, "sub/f", "2\n"); commitIn(l, "sub") }, nil, nil},
		{
			"a file is edited", func(l *lab) { l.write(l.root, "sub/f", "edited\n") },
			[]worktree.Left{{Path: "sub", Reason: worktree.LeftUncommitted}},
			[]string{"sub/f"},
		},
		{
			"a file is new", func(l *lab) { l.write(l.root, "sub/in/new", "new\n") },
			[]worktree.Left{{Path: "sub/in", Reason: worktree.LeftUncommitted}},
			[]string{"sub/in/new"},
		},
		{
			"a file is staged", func(l *lab) { l.write(l.root, "sub/new", "new\n"); l.gitIn(l.root+"/sub", "add", "new") },
			[]worktree.Left{{Path: "sub", Reason: worktree.LeftUncommitted}},
			[]string{"sub/new"},
		},
		{"not checked out", func(l *lab) { l.git("submodule", "--quiet", "deinit", "-f", "sub") }, nil, nil},
		{
			"its objects are gone", func(l *lab) {
				l.remove(l.root, ".git/modules/sub/modules/in/objects")
				l.check(os.MkdirAll(l.root+"/.git/modules/sub/modules/in/objects", 0o755))
			},
			[]worktree.Left{{Path: "sub/in", Reason: worktree.LeftSubmodule}},
			[]string{"sub/in/f", "sub/in/link", "sub/in/.gitattributes", "sub/in/d"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			marker := l.modules()
			test.do(l)
			_ = os.Remove(marker)
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			if !slices.Equal(s.Left, test.left) {
				t.Errorf("Snapshot leaves out %v, want %v", s.Left, test.left)
			}
			c := l.copy(r, s, "0.1")
			same(t, "copy", inModules(l.files(c.Root, test.skip...)), inModules(l.files(l.root, test.skip...)))
			if ch := l.collect(c); !ch.Empty || len(ch.Left) > 0 {
				t.Errorf("Collect of a copy as it was made = %+v, want nothing", ch)
			}
			if out := l.gitIn(c.Root, "status", "--porcelain"); out != "" && test.name != "at another commit" {
				t.Errorf("git status in the copy = %q, want nothing", out)
			}
			// Writers of the writer have them, too.
			inner := l.copy(r, l.snapshot(c.Tree()), "0.1.1")
			same(t, "copy of the copy", l.files(inner.Root), l.files(c.Root))
			l.drop(inner)
			if _, err := os.Lstat(marker); err == nil {
				t.Error("something of a submodule's ran")
			}
			l.drop(c)
			l.close(r)
		})
	}
}

// What a writer changes in a submodule is named, and kept.
func TestChangeInASubmoduleIsNamed(t *testing.T) {
	for name, edit := range map[string]func(l *lab, dir string){
		"edited":  func(l *lab, dir string) { l.write(dir, "sub/f", "child\n") },
		"new":     func(l *lab, dir string) { l.write(dir, "sub/in/new", "child\n") },
		"mode":    func(l *lab, dir string) { l.writeMode(dir, "sub/f", "f\n", 0o755) },
		"link":    func(l *lab, dir string) { l.link(dir, "sub/link", "nowhere") },
		"deleted": func(l *lab, dir string) { l.remove(dir, "sub/d") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.modules()
			r := l.open(worktree.Options{})
			c := l.copy(r, l.snapshot(r.Tree()), "0.1")
			edit(l, c.Root)
			ch := l.collect(c)
			if want := []worktree.Left{{Path: "sub", Reason: worktree.LeftSubmodule}}; !slices.Equal(ch.Left, want) {
				t.Errorf("Collect leaves out %v, want %v", ch.Left, want)
			}
			want := l.files(c.Root + "/sub")
			same(t, "what was left out", l.files(l.drop(c)+"/sub"), want)
			l.close(r)
		})
	}
}
