package worktree_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skein/worktree"
)

// A cell is a box of these tests: it holds nothing back, but what runs in it knows that it
// does. Package orchestrator is tested with boxes that hold.
type cell struct {
	reach  worktree.Reach
	tamper func(verb string, reach worktree.Reach, a *worktree.Answer) // as a git would that a writer got hold of
}

const inCell = "SKEIN_TEST_CELL"

// Git implements [worktree.Box].
func (b cell) Git(ctx context.Context, c worktree.Call) (worktree.Answer, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdin = c.Dir, c.Stdin
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", inCell + "=1"}, c.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	a := worktree.Answer{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: cmd.ProcessState.ExitCode()}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	if b.tamper != nil {
		b.tamper(verb(c.Argv), b.reach, &a)
	}
	return a, err
}

// Close implements [worktree.Box].
func (cell) Close() error { return nil }

// verb is what a git call does.
func verb(argv []string) string {
	for i := 1; i < len(argv); i++ {
		if argv[i] != "-c" {
			return argv[i]
		}
		i++
	}
	return ""
}

func openCell(_ context.Context, reach worktree.Reach) (worktree.Box, error) {
	return cell{reach: reach}, nil
}

// boxes says that there are boxes, for the copies that are made of layers: so all that is
// tested of copies is tested with and without.
func boxes() func(context.Context, worktree.Reach) (worktree.Box, error) {
	if os.Getenv(onOverlay) == "" {
		return nil
	}
	return openCell
}

// watch has every git call outside of cells noted that is given a working tree. It returns
// what lists those since it was asked last.
func (l *lab) watch() (trees func() string) {
	l.Helper()
	git, err := exec.LookPath("git")
	l.check(err)
	dir := l.TempDir()
	log := dir + "/log"
	l.writeMode(dir, "git", "#!/bin/sh\n[ -n \"$"+inCell+"\" ] || echo \"$GIT_WORK_TREE\" >>'"+log+"'\nexec '"+git+"' \"$@\"\n", 0o755)
	l.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		l.check(err)
		l.check(os.Remove(log))
		return string(text)
	}
}

// With a box no git outside of it is ever given the files of a copy.
func TestCopiesAreReadInBoxes(t *testing.T) {
	for _, boxed := range []bool{false, true} {
		l := newLab(t)
		l.write(l.root, "a", "a\n")
		l.write(l.root, ".gitignore", "*.log\n")
		l.write(l.root, ".worktreeinclude", "*.log\n")
		l.write(l.root, "x.log", "comes along\n")
		l.commit()
		trees := l.watch()
		bare := func(context.Context, worktree.Reach) (worktree.Box, error) { return nil, nil }
		o := worktree.Options{Session: "s", Box: bare}
		if boxed {
			o.Box = openCell
		}
		r := l.open(o)
		s := l.snapshot(r.Tree())
		c := l.copy(r, s, "0.1")
		l.write(c.Root, "a", "by the writer\n")
		l.write(c.Root, "new", "new\n")
		_ = trees()
		check := func(what string) {
			t.Helper()
			if got := strings.Contains(trees(), folder(c)); got == boxed {
				t.Errorf("%s, in a box %v: git outside of one was given the copy: %v", what, boxed, got)
			}
		}
		ch := l.collect(c)
		check("Collect")
		if len(ch.Files) != 2 || len(ch.Left) > 0 {
			t.Errorf("Collect = %+v, want two files", ch)
		}
		mine := l.snapshot(c.Tree())
		check("Snapshot")
		deep := l.copy(r, mine, "0.1.1")
		_ = trees() // a fresh one is checked out by our own git
		if got, err := os.ReadFile(deep.Root + "/x.log"); err != nil || string(got) != "comes along\n" {
			t.Errorf("x.log = %q, %v, want it in the writer's writer's copy", got, err)
		}
		l.write(deep.Root, "deep", "deep\n")
		merged := l.merge(r, mine.Commit, l.collect(deep))
		_ = trees()
		l.apply(c.Tree(), mine.Commit, merged)
		if got := strings.Contains(strings.ReplaceAll(trees(), l.root, ""), folder(c)+"/"+stored()); got == boxed {
			t.Errorf("Apply, in a box %v: git outside of one was given the copy: %v", boxed, got)
		}
		if got := l.files(c.Root)["deep"]; got == "" {
			t.Error("Apply brought nothing")
		}
		l.drop(deep)
		l.drop(c)
		l.close(r)
	}
}

// Whatever a git in a box answers, the store takes what is whole and may be in a
// repository, and nothing has the copy's work lost.
func TestLiesOfABox(t *testing.T) {
	packOf := func(l *lab, reach worktree.Reach) string {
		packs, err := filepath.Glob(reach.Scratch + "/pack-*.pack")
		if err != nil || len(packs) != 1 {
			l.Fatalf("%d packs, %v, want one", len(packs), err)
		}
		l.check(os.Chmod(packs[0], 0o600))
		return packs[0]
	}
	// rooted has the box answer with a tree that no working tree could give.
	rooted := func(l *lab, reach worktree.Reach, a *worktree.Answer, entry string) {
		cmd := exec.CommandContext(l.Context(), "git", "--git-dir="+l.root+"/.git", "mktree", "-z", "--missing")
		cmd.Env = append(os.Environ(), "GIT_OBJECT_DIRECTORY="+reach.Scratch+"/objects")
		cmd.Stdin = strings.NewReader(entry)
		out, err := cmd.Output()
		l.check(err)
		a.Stdout = out
	}
	for _, test := range []struct {
		name, verb string
		lie        func(l *lab, reach worktree.Reach, a *worktree.Answer)
		want       string
	}{
		{"damaged pack", "pack-objects", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			at := packOf(l, reach)
			text, err := os.ReadFile(at)
			l.check(err)
			text[len(text)/2] ^= 1
			l.check(os.WriteFile(at, text, 0o600))
		}, "index-pack"},
		{"short pack", "pack-objects", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			l.check(os.Truncate(packOf(l, reach), 40))
		}, "early EOF"},
		{"no pack", "pack-objects", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			l.check(os.Remove(packOf(l, reach)))
		}, "no such file"},
		{"pack is a link", "pack-objects", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			at := packOf(l, reach)
			l.check(os.Rename(at, reach.Scratch+"/other"))
			l.check(os.Symlink("other", at))
		}, "not a plain file"},
		{"pack is a FIFO", "pack-objects", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			at := packOf(l, reach)
			l.check(os.Remove(at))
			l.fifo(filepath.Dir(at), filepath.Base(at))
		}, "not a plain file"},
		{"name of a pack elsewhere", "pack-objects", func(_ *lab, _ worktree.Reach, a *worktree.Answer) {
			a.Stdout = []byte("../../../pack\n")
		}, "is no id"},
		{"option for a tree", "write-tree", func(_ *lab, _ worktree.Reach, a *worktree.Answer) {
			a.Stdout = []byte("--help\n")
		}, "is no id"},
		{"pack of something else", "pack-objects", func(l *lab, reach worktree.Reach, a *worktree.Answer) {
			cmd := exec.CommandContext(l.Context(), "git", "--git-dir="+l.root+"/.git", "pack-objects", "-q", reach.Scratch+"/pack")
			cmd.Stdin = strings.NewReader(l.git("rev-parse", "HEAD") + "\n")
			out, err := cmd.Output()
			l.check(err)
			a.Stdout = out
		}, "bad object"},
		{"forged object", "write-tree", func(l *lab, reach worktree.Reach, _ *worktree.Answer) {
			l.forge(reach.Scratch+"/objects", "writer\n", "evil!!\n")
		}, "index-pack"},
		{"tree with .git", "write-tree", func(l *lab, reach worktree.Reach, a *worktree.Answer) {
			rooted(l, reach, a, "100644 blob "+l.git("rev-parse", "HEAD:a")+"\t.git\x00")
		}, "hasDotgit"},
		{"tree with ..", "write-tree", func(l *lab, reach worktree.Reach, a *worktree.Answer) {
			rooted(l, reach, a, "100644 blob "+l.git("rev-parse", "HEAD:a")+"\t..\x00")
		}, "hasDotdot"},
		{"tree without its files", "write-tree", func(l *lab, reach worktree.Reach, a *worktree.Answer) {
			rooted(l, reach, a, "100644 blob "+strings.Repeat("1", 40)+"\tghost\x00")
		}, ""},
		{"rules that are a link", "write-tree", func(l *lab, reach worktree.Reach, a *worktree.Answer) {
			rooted(l, reach, a, "120000 blob "+l.git("rev-parse", "HEAD:a")+"\t.gitmodules\x00")
		}, "gitmodulesSymlink"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			l.write(l.root, "a", "a\n")
			l.commit()
			lying := true
			r := l.open(worktree.Options{Session: "s", Box: func(_ context.Context, reach worktree.Reach) (worktree.Box, error) {
				return cell{reach, func(verb string, reach worktree.Reach, a *worktree.Answer) {
					if lying && verb == test.verb {
						test.lie(l, reach, a)
					}
				}}, nil
			}})
			c := l.copy(r, l.snapshot(r.Tree()), "0.1")
			l.write(c.Root, "a", "writer\n")
			ch, err := c.Collect(soon(t), "work\n")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Collect = %+v, %v, want an error with %q", ch, err, test.want)
			}
			if out, err := l.tryGit(l.root, "--git-dir=.git/skein", "fsck", "--strict"); err != nil {
				t.Errorf("store: %v\n%s", err, out)
			}
			lying = false
			if got := l.git("--git-dir=.git/skein", "show", l.collect(c).Commit+":a"); got != "writer" {
				t.Errorf("collected without a lie: a = %q, want the writer's", got)
			}
			left, err := filepath.Glob(folder(c) + "/read-*")
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			l.closeKeeping(r)
		})
	}
}

// forge puts another text in the place of an object that git wrote.
func (l *lab) forge(objects, text, other string) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "git", "hash-object", "--stdin")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	l.check(err)
	id := strings.TrimSpace(string(out))
	at := filepath.Join(objects, id[:2], id[2:])
	if _, err := os.Lstat(at); err != nil {
		l.Fatal(err) // the test proves nothing
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err = z.Write([]byte("blob 7\x00" + other))
	l.check(err)
	l.check(z.Close())
	l.check(os.Remove(at))
	l.check(os.WriteFile(at, packed.Bytes(), 0o400))
}

func TestChangeThatIsTooLarge(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	r := l.open(worktree.Options{Session: "s"})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "a", "writer\n")
	r.SetMostPack(100)
	if ch, err := c.Collect(t.Context(), "work\n"); err == nil || !strings.Contains(err.Error(), "exceeds maximum allowed size") {
		t.Errorf("Collect = %+v, %v, want it too large", ch, err)
	}
	r.SetMostPack(1 << 20)
	if ch := l.collect(c); len(ch.Files) != 1 {
		t.Errorf("Collect = %+v, want the change", ch)
	}
	l.closeKeeping(r)
}

// A copy whose box does not open, or whose git is ended in it, stays as it is.
func TestNoBoxNoCollect(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	none := errors.New("no box today")
	err := none
	r := l.open(worktree.Options{Session: "s", Box: func(_ context.Context, reach worktree.Reach) (worktree.Box, error) {
		return cell{reach: reach}, err
	}})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	l.write(c.Root, "a", "writer\n")
	if ch, err := c.Collect(t.Context(), "work\n"); !errors.Is(err, none) {
		t.Errorf("Collect = %+v, %v, want %v", ch, err, none)
	}
	kept, _ := r.Close(t.Context())
	if len(kept) != 1 || kept[0].Action != worktree.Failed || !errors.Is(kept[0].Err, none) {
		t.Errorf("Close = %+v, want the copy to stay", kept)
	}
	if text, err := os.ReadFile(filepath.Join(folder(c), stored(), "a")); err != nil || string(text) != "writer\n" {
		t.Errorf("a = %q, %v, want it still there", text, err)
	}
	err = nil
	next := l.open(worktree.Options{Session: "next", Box: openCell})
	done, rerr := next.Recover(t.Context())
	if rerr != nil || len(done) != 1 || done[0].Action != worktree.Kept {
		t.Errorf("Recover = %+v, %v, want the work kept", done, rerr)
	}
	l.close(next)
}
