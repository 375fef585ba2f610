package worktree_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"skein/worktree"
)

// While writers work the user works, too. Nothing of theirs is lost, and what cannot be
// applied is kept and reported.
func TestUserWorksMeanwhile(t *testing.T) {
	const lines = "1\n2\n3\n4\n5\n6\n7\n"
	prune := func(l *lab) {
		l.git("reflog", "expire", "--expire=now", "--all")
		l.git("gc", "-q", "--prune=now")
		l.git("worktree", "prune")
	}
	for _, test := range []struct {
		name string
		do   func(l *lab)
		kept []string          // the others are merged
		want map[string]string // files that say so, beside what was there
	}{
		{"does nothing", func(*lab) {}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n"}},
		{"edits other lines", func(l *lab) {
			l.write(l.root, "a", "1\n2\n3\n4\n5\n6\nuser\n")
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\nuser\n"}},
		{"edits the same line", func(l *lab) {
			l.write(l.root, "a", "user\n2\n3\n4\n5\n6\n7\n")
		}, []string{"0.1"}, map[string]string{"a": "user\n2\n3\n4\n5\n6\n7\n"}},
		{"deletes the file", func(l *lab) { l.remove(l.root, "a") }, []string{"0.1"}, map[string]string{"a": ""}},
		{"makes the same file", func(l *lab) {
			l.write(l.root, "new", "user\n")
		}, []string{"0.2"}, map[string]string{"new": "user\n", "a": "one\n2\n3\n4\n5\n6\n7\n"}},
		{"stages and edits on", func(l *lab) {
			l.write(l.root, "a", "1\n2\n3\n4\n5\n6\nstaged\n")
			l.git("add", "a")
			l.write(l.root, "a", "1\n2\n3\n4\n5\n6\nuser\n")
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\nuser\n"}},
		{"commits", func(l *lab) {
			l.write(l.root, "a", "1\n2\n3\n4\n5\n6\nuser\n")
			l.git("commit", "-q", "-a", "-m", "user")
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\nuser\n"}},
		{"commits and cleans up", func(l *lab) {
			l.git("commit", "-q", "--amend", "-m", "user")
			prune(l)
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n"}},
		{"stashes", func(l *lab) {
			l.git("stash", "-q", "-u")
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n", "mine": ""}},
		{"goes to another branch", func(l *lab) {
			l.git("switch", "-q", "topic")
		}, []string{"0.1"}, map[string]string{"a": "topic\n2\n3\n4\n5\n6\n7\n", "topic": "topic\n"}},
		{"goes to another branch and deletes the first", func(l *lab) {
			l.git("switch", "-q", "topic")
			l.git("branch", "-q", "-D", "main")
			prune(l)
		}, []string{"0.1"}, map[string]string{"a": "topic\n2\n3\n4\n5\n6\n7\n"}},
		{"detaches HEAD", func(l *lab) { l.git("checkout", "-q", "--detach") }, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n"}},
		{"rebases", func(l *lab) {
			l.git("stash", "-q", "-u")
			l.git("switch", "-q", "other")
			l.git("rebase", "-q", "main")
			l.git("stash", "pop", "-q")
			prune(l)
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n", "other": "other\n"}},
		{"is in the middle of a rebase that conflicts", func(l *lab) {
			l.git("stash", "-q", "-u")
			l.write(l.root, "a", "main\n2\n3\n4\n5\n6\n7\n")
			l.git("commit", "-q", "-a", "-m", "main")
			if _, err := l.tryGit(l.root, "rebase", "-q", "topic"); err == nil {
				l.Fatal("the rebase does not conflict")
			}
		}, []string{"0.1", "0.2"}, nil},
		{"throws all away", func(l *lab) {
			l.git("reset", "-q", "--hard", "HEAD~1")
			prune(l)
		}, nil, map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", lines)
			l.commit()
			l.git("switch", "-q", "-c", "topic")
			l.write(l.root, "a", "topic\n2\n3\n4\n5\n6\n7\n")
			l.write(l.root, "topic", "topic\n")
			l.commit()
			l.git("switch", "-q", "-c", "other", "main")
			l.write(l.root, "other", "other\n")
			l.commit()
			l.git("switch", "-q", "main")
			l.write(l.root, "second", "second\n")
			l.commit()
			l.write(l.root, "mine", "untracked\n")

			r := l.open(worktree.Options{Session: "s"})
			s := l.snapshot(r.Tree())
			one, two := l.copy(r, s, "0.1"), l.copy(r, s, "0.2")
			l.write(one.Root, "a", strings.Replace(lines, "1", "one", 1))
			test.do(l)
			l.write(two.Root, "new", "two\n")
			users := l.files(l.root)
			index, err := os.ReadFile(l.root + "/.git/index")
			l.check(err)
			refs := l.git("for-each-ref", "refs/heads", "refs/stash") + l.git("rev-parse", "HEAD") + l.git("reflog", "--all")

			onto, kept := s.Commit, []string{}
			for _, c := range []*worktree.Copy{one, two} {
				ch := l.collect(c)
				merged := l.merge(r, onto, ch)
				switch _, err := r.Tree().Apply(t.Context(), onto, merged); {
				case err == nil:
					onto = merged
				case errors.As(err, new(*worktree.ConflictError)), errors.As(err, new(*worktree.UnmergedError)):
					_, err := r.Keep(t.Context(), ch, c.Name, err.Error())
					l.check(err)
					kept = append(kept, c.Name)
				default:
					t.Errorf("Apply of %s = %v, want no error or a conflict", c.Name, err)
				}
				l.drop(c)
			}
			if got, want := strings.Join(kept, " "), strings.Join(test.kept, " "); got != want {
				t.Errorf("kept %q, want %q", got, want)
			}
			if !strings.Contains(strings.Join(test.kept, " "), "0.2") {
				users["new"] = `false "two\n"`
			}
			for name, text := range test.want {
				if delete(users, name); text != "" {
					users[name] = `false "` + strings.ReplaceAll(text, "\n", `\n`) + `"`
				}
			}
			same(t, "tree", l.files(l.root), users)
			if now, err := os.ReadFile(l.root + "/.git/index"); err != nil || !bytes.Equal(now, index) {
				t.Error("the user's index changed")
			}
			if now := l.git("for-each-ref", "refs/heads", "refs/stash") + l.git("rev-parse", "HEAD") + l.git("reflog", "--all"); now != refs {
				t.Errorf("the user's refs = %s, want %s", now, refs)
			}
			l.close(r)
			prune(l)
			list := l.kept(l.open(worktree.Options{}), "s")
			if len(list) != len(test.kept) {
				t.Errorf("Kept = %+v, want %q", list, test.kept)
			}
			for _, k := range list {
				l.git("--git-dir=.git/skein", "log", "-p", "-1", k.Ref)
			}
			l.git("fsck", "--strict")
		})
	}
}

// A folder in the way is the user's, though it holds nothing that git knows of.
func TestFoldersInTheWay(t *testing.T) {
	for _, test := range []struct {
		name    string
		folders []string
		kind    string // "" is merged
	}{
		{"none", nil, ""},
		{"an empty one", []string{"new"}, worktree.KindInTheWay},
		{"with another one in it", []string{"new/deep"}, worktree.KindInTheWay},
		{"an empty one beside files that go", []string{"dir/mine"}, worktree.KindInTheWay},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "dir/deep/a", "a\n")
			l.write(l.root, "dir/b", "b\n")
			l.commit()
			r := l.open(worktree.Options{})
			s := l.snapshot(r.Tree())
			ch := l.change(r, s, "0.1", func(dir string) {
				l.remove(dir, "dir")
				l.write(dir, "dir", "file\n")
				l.write(dir, "new", "file\n")
			})
			for _, folder := range test.folders {
				l.check(os.MkdirAll(l.root+"/"+folder, 0o755))
			}
			_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
			conflict := (*worktree.ConflictError)(nil)
			switch {
			case test.kind == "":
				l.check(err)
				same(t, "tree", l.files(l.root), map[string]string{"dir": `false "file\n"`, "new": `false "file\n"`})
			case !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Kind != test.kind:
				t.Errorf("Apply = %v, want one conflict of kind %s", err, test.kind)
			}
			for _, folder := range test.folders {
				if info, err := os.Stat(l.root + "/" + folder); err != nil || !info.IsDir() {
					t.Errorf("%s is %v, %v, want the user's folder", folder, info, err)
				}
			}
			l.close(r)
		})
	}
}

// One that is made in the very moment stays, too.
func TestAFolderInTheWayAtTheLastMoment(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Fault: func(at string) error {
		if at == "before replace new" {
			return os.Mkdir(l.root+"/new", 0o755)
		}
		return nil
	}})
	s := l.snapshot(r.Tree())
	ch := l.change(r, s, "0.1", func(dir string) { l.write(dir, "new", "file\n") })
	_, err := r.Tree().Apply(t.Context(), s.Commit, l.merge(r, s.Commit, ch))
	if conflict := (*worktree.ConflictError)(nil); !errors.As(err, &conflict) || conflict.Conflicts[0].Kind != worktree.KindInTheWay {
		t.Errorf("Apply = %v, want a conflict in the way", err)
	}
	if info, err := os.Stat(l.root + "/new"); err != nil || !info.IsDir() {
		t.Errorf("new is %v, %v, want the user's folder", info, err)
	}
	l.close(r)
}
