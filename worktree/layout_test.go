package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/worktree"
)

func TestOpenRefusesOddLayouts(t *testing.T) {
	for _, test := range []struct {
		name, want string
		prepare    func(l *lab) (dir string)
	}{
		{"bare", "a bare repository", func(l *lab) string {
			bare := t.TempDir()
			l.gitIn(bare, "init", "-q", "--bare")
			return bare
		}},
		{"bare and not allowed by the user", "a bare repository", func(l *lab) string {
			t.Setenv("GIT_CONFIG_GLOBAL", os.Getenv("HOME")+"/.gitconfig")
			l.userConfig("[safe]\n\tbareRepository = explicit\n")
			bare := t.TempDir()
			l.gitIn(bare, "init", "-q", "--bare")
			return bare
		}},
		{"git directory", "inside a git directory", func(l *lab) string { return l.root + "/.git" }},
		{"below a git directory", "inside a git directory", func(l *lab) string { return l.root + "/.git/refs" }},
		{"tree far above", "has no .git that leads to", func(l *lab) string {
			dir := t.TempDir() + "/x/y"
			l.check(os.MkdirAll(dir, 0o755))
			l.gitIn(dir, "init", "-q", "--template=")
			l.gitIn(dir, "config", "core.worktree", "../../..")
			return dir
		}},
		{"tree elsewhere", "no working tree", func(l *lab) string {
			l.git("config", "core.worktree", t.TempDir())
			return l.root
		}},
		{"git directory in the tree", "lies in the working tree", func(l *lab) string {
			l.git("init", "-q", "--separate-git-dir", l.root+"/meta")
			return l.root
		}},
		{"git directory in the tree by a link", "lies in the working tree", func(l *lab) string {
			l.check(os.Rename(l.root+"/.git", l.root+"/meta"))
			l.link(l.root, ".git", "meta")
			return l.root
		}},
		{"common directory in the tree", "lies in the working tree", func(l *lab) string {
			linked := t.TempDir() + "/linked"
			l.git("worktree", "add", "-q", "--detach", linked)
			l.check(os.Rename(l.root+"/.git", linked+"/meta"))
			entries, err := filepath.Glob(linked + "/meta/worktrees/*")
			l.check(err)
			l.write(linked, ".git", "gitdir: "+entries[0]+"\n")
			return linked
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			dir := test.prepare(l)
			_, err := worktree.Open(t.Context(), dir, worktree.Options{Cache: l.cache})
			odd := (*worktree.LayoutError)(nil)
			if !errors.As(err, &odd) || odd.Hint() == "" || errors.Is(err, worktree.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want a LayoutError with %q", err, test.want)
			}
		})
	}
}

func TestOpenTakesGitFilesAndLinks(t *testing.T) {
	for name, prepare := range map[string]func(l *lab) (dir string){
		"linked worktree below the main one": func(l *lab) string {
			l.git("worktree", "add", "-q", "--detach", "below/linked")
			return l.root + "/below/linked"
		},
		"git directory elsewhere": func(l *lab) string {
			l.git("init", "-q", "--separate-git-dir", t.TempDir()+"/meta")
			return l.root
		},
		"link to a git directory elsewhere": func(l *lab) string {
			away := t.TempDir() + "/meta"
			l.check(os.Rename(l.root+"/.git", away))
			l.link(l.root, ".git", away)
			return l.root
		},
		"submodule": func(l *lab) string {
			l.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", l.root, "sub")
			return l.root + "/sub"
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			dir := prepare(l)
			r := l.openAt(dir, worktree.Options{})
			if r.Tree().Root != dir {
				t.Errorf("Open found %s, want %s", r.Tree().Root, dir)
			}
			l.snapshot(r.Tree())
			l.close(r)
		})
	}
}
