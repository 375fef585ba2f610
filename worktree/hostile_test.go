package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"skein/worktree"
)

// soon is a context for calls that must not hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func (l *lab) fifo(dir, name string) {
	l.Helper()
	_ = os.Remove(dir + "/" + name)
	l.check(os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755))
	l.check(syscall.Mkfifo(dir+"/"+name, 0o600))
}

// sparse makes a file of that size that needs no space.
func (l *lab) sparse(dir, name string, size int64) {
	l.Helper()
	l.write(dir, name, "")
	l.check(os.Truncate(dir+"/"+name, size))
}

func TestFilesThatGitWouldHangOn(t *testing.T) {
	const huge = 1 << 40
	for _, test := range []struct {
		name  string
		plant func(l *lab, dir string)
		left  []string
	}{
		{"FIFO for known rules", func(l *lab, dir string) {
			for _, name := range []string{".gitignore", "sub/.gitattributes"} {
				l.fifo(dir, name)
			}
		}, []string{".gitignore", "sub/.gitattributes"}},
		{"FIFO for new rules", func(l *lab, dir string) {
			for _, name := range []string{".gitattributes", ".gitmodules", "sub/.gitignore", "new/deep/.gitignore"} {
				l.fifo(dir, name)
			}
		}, []string{".gitattributes", ".gitmodules", "new/deep/.gitignore", "sub/.gitignore"}},
		{"huge rules", func(l *lab, dir string) {
			l.sparse(dir, ".gitignore", huge)
			l.sparse(dir, "sub/.gitignore", huge)
		}, []string{".gitignore", "sub/.gitignore"}},
		{"link to a device", func(l *lab, dir string) {
			l.link(dir, ".gitmodules", "/dev/zero")
		}, []string{".gitmodules"}},
		{"nested repository", func(l *lab, dir string) {
			l.fifo(dir, "nested/.git/HEAD")
			l.write(dir, "other/.git/HEAD", "ref: refs/heads/x\n")
			l.check(os.Symlink("/dev/zero", dir+"/other/.git/commondir"))
		}, []string{"nested/.git/HEAD", "other/.git/commondir"}},
		{"submodule", func(l *lab, dir string) {
			l.write(dir, "mod/.git/HEAD", "ref: refs/heads/x\n")
			l.fifo(dir, "mod/.git/refs/heads/x")
		}, []string{"mod/.git/refs/heads/x"}},
		{"submodule is a FIFO", func(l *lab, dir string) { l.fifo(dir, "mod") }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.write(l.root, "sub/.gitattributes", "*.bin -text\n")
			l.write(l.root, ".gitignore", "*.log\n")
			id := l.commit()
			if strings.HasPrefix(test.name, "submodule") {
				l.fresh = "it has a submodule"
				l.git("update-index", "--add", "--cacheinfo", "160000,"+id+",mod")
				l.git("commit", "-q", "-m", "mod")
				l.check(os.Mkdir(l.root+"/mod", 0o755))
			}
			r := l.open(worktree.Options{Session: "s"})
			s := l.snapshot(r.Tree())
			plant := func(name string) *worktree.Copy {
				c := l.copy(r, s, name)
				l.remove(c.Root, "mod")
				l.write(c.Root, "work", "work of "+name+"\n")
				l.write(c.Root, "out.log", "ignored\n")
				test.plant(l, c.Root)
				c.Attach("") // its box is closed
				return c
			}
			c := plant("0.1")
			ch, err := c.Collect(soon(t), "work\n")
			if err != nil {
				t.Fatalf("Collect = %v, want no error", err)
			}
			for _, f := range ch.Files {
				switch {
				case f.Path == "work", f.Path == "mod", strings.HasPrefix(f.Path, "other/"):
				default:
					t.Errorf("Collect took %+v, want only the work", f)
				}
			}
			var left []string
			for _, f := range ch.Left {
				if f.Reason == worktree.LeftUnsafe {
					left = append(left, f.Path)
				}
			}
			if !slices.Equal(left, test.left) {
				t.Errorf("Collect left %q, want %q", left, test.left)
			}
			again, err := c.Collect(soon(t), "work\n")
			if err != nil || again.Commit != ch.Commit || !slices.Equal(again.Left, ch.Left) {
				t.Errorf("Collect again = %+v, %v, want %+v", again, err, ch)
			}
			// Reclaiming another one keeps the work, too.
			plant("0.2")
			if _, err := r.Close(soon(t)); err != nil {
				t.Errorf("Close = %v, want no error", err)
			}
			got, err := l.tryGit(l.root, "--git-dir=.git/skein", "show", "refs/skein/s/1/kept/0.2:work")
			if err != nil || got != "work of 0.2" {
				t.Errorf("kept work = %q, %v, want it", got, err)
			}
		})
	}
}

func TestLargeRulesOfTheUsersStay(t *testing.T) {
	l := newLab(t)
	l.write(l.root, ".gitignore", "*.log\n"+strings.Repeat("# a line of rules\n", 1<<16))
	l.commit()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "out.log", "ignored\n")
	if ch := l.collect(c); !ch.Empty || len(ch.Left) > 0 {
		t.Errorf("Collect = %+v, want nothing changed and nothing left out", ch)
	}
	l.close(r)
}

func TestSnapshotRefusesAFIFOThatGitWouldReadFrom(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	l.fifo(l.root, "new/.gitignore")
	r := l.open(worktree.Options{})
	_, err := r.Tree().Snapshot(soon(t))
	if e := (*worktree.SpecialFileError)(nil); !errors.As(err, &e) || e.Path != "new/.gitignore" {
		t.Errorf("Snapshot = %v, want a SpecialFileError for new/.gitignore", err)
	}
	l.remove(l.root, "new")
	l.snapshot(r.Tree())
	l.close(r)
}

func TestRecoverSetsAsideWhatItCannotRead(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	dead := l.open(worktree.Options{Session: "dead"})
	s := l.snapshot(dead.Tree())
	for _, name := range []string{"0.1", "0.2"} {
		l.write(l.copy(dead, s, name).Root, "work", "work\n")
	}
	copies, err := filepath.Glob(l.cache + "/copies/*")
	l.check(err)
	// No writer can do this, but a disk can.
	l.fifo(copies[0]+"/0.1/git", "info/exclude")
	dead.SetReclaimTime(time.Second)
	kept, err := dead.Close(soon(t))
	if err != nil || len(kept) != 2 || kept[0].Action != worktree.Failed || kept[1].Action != worktree.Kept {
		t.Errorf("Close = %+v, %v, want the copy that cannot be read, and the other kept", kept, err)
	}
	next := l.open(worktree.Options{Session: "next"})
	next.SetReclaimTime(time.Second)
	if done, err := next.Recover(soon(t)); err != nil || len(done) > 0 {
		t.Errorf("Recover = %+v, %v, want nothing: Close told it", done, err)
	}
	// Another cause is told, once.
	l.check(os.Remove(copies[0] + "/0.1/git/info/exclude"))
	l.check(os.Rename(copies[0]+"/0.1/git/HEAD", copies[0]+"/0.1/git/gone"))
	done, err := next.Recover(soon(t))
	if err != nil || len(done) != 1 || done[0].Action != worktree.Failed || done[0].Folder != copies[0]+"/0.1/"+stored() {
		t.Errorf("Recover = %+v, %v, want one failure with its folder", done, err)
	}
	if done, err := next.Recover(soon(t)); err != nil || len(done) > 0 {
		t.Errorf("Recover again = %+v, %v, want nothing", done, err)
	}
	if text, err := os.ReadFile(copies[0] + "/0.1/" + stored() + "/work"); err != nil || string(text) != "work\n" {
		t.Errorf("work = %q, %v, want it still there", text, err)
	}
	// A copy of which it is not known whether it was ever whole is not taken for one that was not.
	base := copies[0] + "/0.1/base"
	l.check(errors.Join(os.Rename(base, base+".gone"), os.Mkdir(base, 0o700)))
	if done, err := next.Recover(soon(t)); err != nil || len(done) != 1 || done[0].Action != worktree.Failed {
		t.Errorf("Recover = %+v, %v, want one failure", done, err)
	}
	l.check(errors.Join(os.Remove(base), os.Rename(base+".gone", base)))
	// And when nothing hinders any more the work is kept.
	l.check(os.Rename(copies[0]+"/0.1/git/gone", copies[0]+"/0.1/git/HEAD"))
	done, err = next.Recover(soon(t))
	if err != nil || len(done) != 1 || done[0].Action != worktree.Kept {
		t.Fatalf("Recover at last = %+v, %v, want the copy kept", done, err)
	}
	if got := l.git("--git-dir=.git/skein", "show", done[0].Ref+":work"); got != "work" {
		t.Errorf("kept work = %q, want it", got)
	}
}
