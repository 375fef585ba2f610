package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// TestMain serves as the process that is killed, where crash asks for it.
func TestMain(m *testing.M) {
	if root := os.Getenv("CRASH_ROOT"); root != "" {
		run := crash
		switch os.Getenv("CRASH_IN") {
		case "team":
			run = crashTeam
		case "resolve":
			run = crashResolve
		case "base":
			run = makeBase
		}
		if err := run(context.Background(), root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crash does a whole run and kills itself at the point whose number CRASH_AT is. All
// points of Apply count, but only its replacements where CRASH_IN says replace. Of the
// rest the points after git calls that change something count: nearly nothing happens
// until the next call.
func crash(ctx context.Context, root string) error {
	at, err := strconv.Atoi(os.Getenv("CRASH_AT"))
	if err != nil {
		return err
	}
	applying, whole := false, os.Getenv("CRASH_IN") == "run"
	counts := func(point string) bool {
		if strings.HasPrefix(point, "looked at ") {
			return false // nothing happened since the point before
		}
		if whole {
			return (applying || strings.HasPrefix(point, "after ")) && !asks(point)
		}
		return applying && !strings.Contains(point, " git ")
	}
	fault := func(point string) error {
		if !counts(point) {
			return nil
		}
		if at--; at == 0 {
			fmt.Println(point)
			return errors.Join(syscall.Kill(os.Getpid(), syscall.SIGKILL), errors.New("still alive"))
		}
		return nil
	}
	r, err := worktree.Open(ctx, root, worktree.Options{
		Cache: os.Getenv("CRASH_CACHE"), Session: "dead", Run: "1", Layers: layers(), Box: boxes(), Fault: fault,
	})
	if err != nil {
		return err
	}
	s, err := r.Tree().Snapshot(ctx)
	if err != nil {
		return err
	}
	c, err := r.Copy(ctx, s, "0.1")
	if err != nil {
		return err
	}
	end, err := attach(ctx, c, os.Getenv("HOME"))
	if err != nil {
		return err
	}
	if err := crashEdit(c.Root); err != nil {
		return err
	}
	end()
	c.Attach("")
	ch, err := c.Collect(ctx, "work\n")
	if err != nil {
		return err
	}
	merged, err := r.Merge(ctx, s.Commit, ch)
	if err != nil {
		return err
	}
	applying = true
	if _, err := c.ApplyTo(ctx, r.Tree(), s.Commit, merged); err != nil {
		return err
	}
	if err := fault("applied"); err != nil {
		return err
	}
	applying = false
	if _, err := c.Remove(ctx); err != nil {
		return err
	}
	_, err = r.Close(ctx)
	return err
}

// asks reports whether a point is at a git call that changes nothing, so that a kill
// there is one at the point before.
func asks(point string) bool {
	_, verb, git := strings.Cut(point, " git ")
	return git && slices.Contains([]string{"version", "rev-parse", "symbolic-ref", "diff-tree", "diff-files", "log"}, verb)
}

func crashEdit(dir string) error {
	return errors.Join(
		os.WriteFile(dir+"/a", []byte("a 2\n"), 0o600),
		os.Remove(dir+"/gone/b"),
		os.Chmod(dir+"/c", 0o755),
		os.Remove(dir+"/d"),
		os.MkdirAll(dir+"/d/e", 0o755),
		os.WriteFile(dir+"/d/e/new", []byte("new\n"), 0o600),
		os.Symlink("new", dir+"/d/e/link"),
		os.RemoveAll(dir+"/f"),
		os.WriteFile(dir+"/f", []byte("file\n"), 0o600),
	)
}

func (l *lab) crashRepo() {
	l.write(l.root, "a", "a\n")
	l.write(l.root, "gone/b", "b\n")
	l.write(l.root, "c", "c\n")
	l.write(l.root, "d", "d\n")
	l.write(l.root, "f/g", "g\n")
	l.commit()
	l.write(l.root, "untracked", "untracked\n")
	l.write(l.root, "staged", "staged\n")
	l.git("add", "staged")
}

// killAt runs crash in a process; it returns the point at which that was killed, ""
// when it came to its end.
func (l *lab) killAt(in, root string, at int) string {
	l.Helper()
	if out, killed := l.crashed(in, root, at); killed {
		return out
	}
	return ""
}

// crashed runs a run that kills itself; it returns what that said, and whether it was
// killed or came to its end.
func (l *lab) crashed(in, root string, at int) (out string, killed bool) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CRASH_ROOT="+root, "CRASH_CACHE="+l.cache, "CRASH_IN="+in, fmt.Sprint("CRASH_AT=", at))
	text, err := cmd.CombinedOutput()
	out = strings.TrimSpace(string(text))
	if err == nil {
		return out, false
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		l.Fatalf("process = %v, want it killed\n%s", err, out)
	}
	return out, true
}

// crashes kills a run at every point, or at every third where not all are tried, and has the
// next one recover.
func crashes(t *testing.T, in string, prepare func(l *lab) (root string)) {
	killed, between, step := 0, 0, 3
	if os.Getenv("SKEIN_LONG") != "" {
		step = 1
	}
	actions := map[string]int{}
	for at := 1 + rand.IntN(step); ; at += step {
		l := newLab(t)
		root := prepare(l)
		before, status := l.files(root), l.gitIn(root, "status", "--porcelain")
		after := maps.Clone(before)
		maps.DeleteFunc(after, func(name, _ string) bool { return name == "gone/b" || name == "d" || name == "f/g" })
		after["a"], after["c"], after["f"] = `false "a 2\n"`, `true "c\n"`, `false "file\n"`
		after["d/e/new"], after["d/e/link"] = `false "new\n"`, "-> new"

		point := l.killAt(in, root, at)
		killed++
		what := fmt.Sprintf("%d %s", at, point)
		if found := l.files(root); !maps.Equal(found, before) && !maps.Equal(found, after) {
			between++
		}
		r := l.openAt(root, worktree.Options{Session: "next"})
		done, err := r.Recover(t.Context())
		if err != nil {
			t.Fatalf("%s: Recover = %v, want no error", what, err)
		}
		kept := ""
		for _, rec := range done {
			if rec.Action == worktree.Failed {
				t.Errorf("%s: Recover = %+v, want no failure", what, rec)
			}
			kept += rec.Ref
			actions[rec.Action]++
		}
		got := l.files(root)
		if maps.Equal(got, before) {
			if now := l.gitIn(root, "status", "--porcelain"); now != status {
				t.Errorf("%s: git status = %q, want %q", what, now, status)
			}
		} else {
			same(t, what+" neither before nor after", got, after)
			if kept != "" {
				t.Errorf("%s: the change is merged, and kept as well", what)
			}
		}
		if _, err := os.Lstat(root + "/gone"); err == nil && got["gone/b"] == "" {
			t.Errorf("%s: an empty folder is left", what)
		}
		l.clean(what, kept != "")
		l.close(r)
		if point == "" {
			break
		}
	}
	t.Logf("killed at %d points, %d of them between before and after; recovered: %v", killed-1, between, actions)
	if between < 6/step || actions[worktree.RolledBack] < 6/step || actions[worktree.Finished] < 2/step {
		t.Errorf("killed too few times in the middle of Apply for a proof")
	}
}

// clean checks that a dead run left nothing but what was kept.
func (l *lab) clean(what string, kept bool) {
	l.Helper()
	for _, pattern := range []string{l.cache + "/copies/*", l.root + "/.git/skein/runs/dead*", l.root + "/.git/*.lock"} {
		left, err := filepath.Glob(pattern)
		if err != nil || len(left) > 0 {
			l.Errorf("%s: left %v (%v)", what, left, err)
		}
	}
	if left := mountsBelow(l, "self", l.home()); len(left) > 0 {
		l.Errorf("%s: mounted %q", what, left)
	}
	if refs := l.git("for-each-ref", "refs/skein"); refs != "" && !kept {
		l.Errorf("%s: refs %q, want none", what, refs)
	}
}

func TestKilledBetweenFileSystems(t *testing.T) {
	anyWay(t)
	other, err := os.MkdirTemp("/dev/shm", "skein")
	need(t, err == nil, "no second file system")
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	n := 0
	crashes(t, "replace", func(l *lab) string {
		l.crashRepo()
		l.git("commit", "-q", "-m", "staged")
		n++
		root := fmt.Sprintf("%s/%d", other, n)
		l.git("worktree", "add", "-q", "--detach", root)
		return root
	})
}

func TestKilledAnywhere(t *testing.T) {
	crashes(t, "run", func(l *lab) string { l.crashRepo(); return l.root })
}

func TestRecoverLeavesLiveRunsAlone(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a", "a\n")
	l.commit()
	live := l.open(worktree.Options{Session: "live"})
	c := l.copy(live, l.snapshot(live.Tree()), "0.1")
	l.write(c.Root, "a", "work\n")
	other := l.open(worktree.Options{Session: "other"})
	done, err := other.Recover(t.Context())
	if err != nil || len(done) > 0 {
		t.Errorf("Recover = %+v, %v, want nothing done", done, err)
	}
	if ch := l.collect(c); len(ch.Files) != 1 {
		t.Errorf("Collect = %+v, want one file", ch)
	}
	l.close(live)
	l.close(other)
}
