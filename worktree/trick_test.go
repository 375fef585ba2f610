package worktree_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"skein/worktree"
)

// A trick is something a writer does so that git, called in its copy, does what it
// should not. Works reports whether git falls for it there: else the test proves nothing.
type trick struct {
	name  string
	do    func(l *lab, c *worktree.Copy, spy string)
	works func(l *lab, c *worktree.Copy, ran func() bool) bool
	files []string // that are taken beside the edit of a
	left  []string // that are named
}

// add is what a harness would do without a git directory of its own.
func (l *lab) add(c *worktree.Copy) { _, _ = l.tryGit(c.Root, "add", "-A") }

// staged is what the writer's index then holds of a file.
func (l *lab) staged(c *worktree.Copy, name string) string {
	out, err := l.tryGit(c.Root, "show", ":"+name)
	if err != nil {
		return ""
	}
	return out
}

func configured(key string) func(l *lab, c *worktree.Copy, spy string) {
	return func(l *lab, c *worktree.Copy, spy string) {
		l.gitIn(c.Root, "config", key, spy)
		l.write(c.Root, ".gitattributes", "* filter=x\n")
	}
}

func addRuns(l *lab, c *worktree.Copy, ran func() bool) bool {
	l.add(c)
	return ran()
}

var tricks = []trick{
	{"filter", configured("filter.x.clean"), addRuns, []string{".gitattributes"}, nil},
	{"filter process", configured("filter.x.process"), addRuns, []string{".gitattributes"}, nil},
	{"monitor", configured("core.fsmonitor"), addRuns, []string{".gitattributes"}, nil},
	{"included configuration", func(l *lab, c *worktree.Copy, spy string) {
		l.write(c.Root, "evil.cfg", "[core]\n\tfsmonitor = \""+spy+"\"\n")
		l.gitIn(c.Root, "config", "include.path", c.Root+"/evil.cfg")
	}, addRuns, []string{"evil.cfg"}, nil},
	{"hook", func(l *lab, c *worktree.Copy, spy string) {
		l.gitIn(c.Root, "config", "core.hooksPath", c.Root+"/hooks")
		l.writeMode(c.Root, "hooks/post-index-change", "#!/bin/sh\n"+spy, 0o755)
	}, addRuns, []string{"hooks/post-index-change"}, nil},
	{"git directory is a link to another repository", func(l *lab, c *worktree.Copy, spy string) {
		other := l.TempDir()
		l.gitIn(other, "init", "-q", "--template=")
		l.gitIn(other, "config", "core.fsmonitor", spy)
		l.remove(c.Root, ".git")
		l.link(c.Root, ".git", other+"/.git")
	}, addRuns, nil, nil},
	{"git directory is a file that leads elsewhere", func(l *lab, c *worktree.Copy, spy string) {
		other := l.TempDir()
		l.gitIn(other, "init", "-q", "--template=")
		l.gitIn(other, "config", "core.fsmonitor", spy)
		l.remove(c.Root, ".git")
		l.write(c.Root, ".git", "gitdir: "+other+"/.git\n")
	}, addRuns, nil, nil},
	{"forged object", func(l *lab, c *worktree.Copy, _ string) {
		id := l.gitIn(c.Root, "hash-object", "a")
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		_, err := z.Write([]byte("blob 5\x00evil\n"))
		l.check(err)
		l.check(z.Close())
		l.write(c.GitDir, "own/objects/"+id[:2]+"/"+id[2:], packed.String())
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "a") == "evil"
	}, nil, nil},
	{"replaced object", func(l *lab, c *worktree.Copy, _ string) {
		mine := l.gitIn(c.Root, "hash-object", "-w", "a")
		l.write(c.Root, "b", "evil\n")
		l.gitIn(c.Root, "replace", mine, l.gitIn(c.Root, "hash-object", "-w", "b"))
		l.remove(c.Root, "b")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "a") == "evil"
	}, nil, nil},
	{"flags in the index", func(l *lab, c *worktree.Copy, _ string) {
		l.gitIn(c.Root, "update-index", "--assume-unchanged", "a")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "a") == "a"
	}, nil, nil},
	{"files in the index only", func(l *lab, c *worktree.Copy, _ string) {
		id := l.gitIn(c.Root, "hash-object", "-w", "a")
		l.gitIn(c.Root, "update-index", "--add", "--cacheinfo", "100644,"+id+",ghost", "--skip-worktree", "ghost")
		l.gitIn(c.Root, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "ghost") != ""
	}, nil, nil},
	{"no index", func(l *lab, c *worktree.Copy, _ string) {
		l.write(c.GitDir, "index", "garbage")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		_, err := l.tryGit(c.Root, "add", "-A")
		return err != nil
	}, nil, nil},
	{"exclusions of its own", func(l *lab, c *worktree.Copy, _ string) {
		l.write(c.GitDir, "own/info/exclude", "new\n")
		l.write(c.Root, "new", "new\n")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "new") == ""
	}, []string{"new"}, nil},
	{"attributes of its own", func(l *lab, c *worktree.Copy, _ string) {
		l.write(c.GitDir, "own/info/attributes", "new text\n")
		l.write(c.Root, "new", "new\r\n")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "new") == "new"
	}, []string{"new"}, nil},
	{"files of the harness", func(l *lab, c *worktree.Copy, _ string) {
		l.write(c.Root, ".skein/config.yaml", "hooks: everything\n")
		l.write(c.Root, "dir/.SKEIN/config.yaml", "hooks: everything\n")
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, ".skein/config.yaml") != "" && l.staged(c, "dir/.SKEIN/config.yaml") != ""
	}, nil, []string{".skein", "dir/.SKEIN"}},
	{"names that are .git elsewhere", func(l *lab, c *worktree.Copy, _ string) {
		l.gitIn(c.Root, "config", "core.protectHFS", "false")
		l.gitIn(c.Root, "config", "core.protectNTFS", "false")
		for _, name := range []string{"git~1/config", "dir/.git./config", "dir/.git /config", "dir/.g\u200cit/config", "dir/.git::$INDEX_ALLOCATION/config"} {
			l.write(c.Root, name, "[core]\n\tfsmonitor = touch ran\n")
		}
	}, func(l *lab, c *worktree.Copy, _ func() bool) bool {
		l.add(c)
		return l.staged(c, "git~1/config") != "" && l.staged(c, "dir/.g\u200cit/config") != ""
	}, nil, []string{"dir/.git /config", "dir/.git./config", "dir/.git::$INDEX_ALLOCATION/config", "dir/.g\u200cit/config", "git~1/config"}},
	{"rules that are links", func(l *lab, c *worktree.Copy, _ string) {
		l.gitIn(c.Root, "config", "core.symlinks", "true")
		l.link(c.Root, ".gitmodules", l.root+"/a")
	}, func(_ *lab, c *worktree.Copy, _ func() bool) bool {
		info, err := os.Stat(c.Root + "/.gitmodules")
		return err == nil && info.Mode().IsRegular() // whoever reads it reads what it leads to
	}, nil, []string{".gitmodules"}},
	{"folder that is a link", func(l *lab, c *worktree.Copy, _ string) {
		l.remove(c.Root, "dir")
		l.link(c.Root, "dir", l.root+"/dir")
		l.write(l.root, "dir/b", "of the user since\n")
	}, func(_ *lab, c *worktree.Copy, _ func() bool) bool {
		text, err := os.ReadFile(c.Root + "/dir/b")
		return err == nil && string(text) == "of the user since\n"
	}, []string{"dir", "dir/b"}, nil},
}

func TestTricksOfWriters(t *testing.T) {
	for _, test := range tricks {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.write(l.root, "dir/b", "b\n")
			l.commit()
			trace := t.TempDir() + "/ran"
			ran := func() bool {
				_, err := os.Lstat(trace)
				return err == nil
			}
			r := l.open(worktree.Options{Session: "s"})
			s := l.snapshot(r.Tree())
			plant := func(name string) *worktree.Copy {
				c := l.copy(r, s, name)
				l.write(c.Root, "a", "child\n")
				test.do(l, c, "touch "+trace)
				return c
			}
			control := plant("0.1")
			if !test.works(l, control, ran) {
				t.Fatalf("git does not fall for it: the test proves nothing")
			}
			l.drop(control)
			_ = os.Remove(trace)

			c := plant("0.2")
			_ = os.Remove(trace) // the writer's own git is in its box
			ch := l.collect(c)
			var files, left []string
			for _, f := range ch.Files {
				if f.Path != "a" {
					files = append(files, f.Path)
				}
			}
			for _, f := range ch.Left {
				left = append(left, f.Path)
			}
			if !slices.Equal(files, test.files) || !slices.Equal(left, test.left) {
				t.Errorf("Collect took %q and left %q, want %q and %q", files, left, test.files, test.left)
			}
			if got := l.git("--git-dir=.git/skein", "show", ch.Commit+":a"); got != "child" {
				t.Errorf("collected a = %q, want what the writer wrote", got)
			}
			if len(ch.Left) == 0 && !slices.Contains(files, "dir/b") {
				l.apply(r.Tree(), s.Commit, l.merge(r, s.Commit, ch))
				for _, name := range []string{".skein/config.yaml", "dir/.SKEIN/config.yaml", "ghost"} {
					if _, err := os.Lstat(l.root + "/" + name); err == nil {
						t.Errorf("Apply wrote %s", name)
					}
				}
			}
			// And where the writer's run died.
			plant("0.3")
			_ = os.Remove(trace)
			l.closeKeeping(r)
			if ran() {
				t.Error("something of the writer's ran")
			}
			if out, err := l.tryGit(l.root, "--git-dir=.git/skein", "fsck", "--strict"); err != nil {
				t.Errorf("store: %v\n%s", err, out)
			}
			if got := fmt.Sprint(l.kept(l.open(worktree.Options{}), "s")); !strings.Contains(got, "kept/0.3") {
				t.Errorf("Kept = %s, want 0.3", got)
			}
		})
	}
}
