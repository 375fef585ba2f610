package worktree_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skein/worktree"
)

// inMounts is set where a test may mount what it likes.
const inMounts = "SKEIN_TEST_MOUNTS"

// mounting runs the test once more in a process that may mount, and whose mounts nobody
// else sees. It reports whether it did.
func mounting(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inMounts) != "" {
		return false
	}
	out, err := exec.CommandContext(t.Context(), "unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", t.TempDir()).CombinedOutput()
	need(t, err == nil, fmt.Sprintf("nothing can be mounted in user namespaces: %v %s", err, out))
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inMounts+"=1")
	if out, err = cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("with mounts: %v\n%s", err, out)
	}
	return true
}

// small puts a small file system into a folder until the test ends.
func (l *lab) small(dir string) {
	l.Helper()
	l.check(os.MkdirAll(dir, 0o700))
	l.check(syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m,mode=700"))
	l.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill leaves so many bytes free in the file system of a folder.
func (l *lab) fill(dir string, free int64) {
	l.Helper()
	var st syscall.Statfs_t
	l.check(syscall.Statfs(dir, &st))
	over := int64(st.Bavail)*st.Bsize - free
	if over > 0 {
		l.check(os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, over), 0o600))
	}
}

// Where the disk is full the error says so, the tree is as it was before or after the change,
// and once there is room the work is there.
func TestDiskFull(t *testing.T) {
	if mounting(t) {
		return
	}
	places := map[string]func(l *lab) (root, disk string){
		"cache": func(l *lab) (string, string) {
			l.small(l.cache)
			return l.root, l.cache
		},
		"git directory": func(l *lab) (string, string) {
			git := l.root + "/.git"
			l.check(os.Rename(git, git+".moved"))
			l.small(git)
			l.check(os.CopyFS(git, os.DirFS(git+".moved")))
			l.remove(l.root, ".git.moved")
			return l.root, git
		},
		"tree": func(l *lab) (string, string) {
			root := l.TempDir() + "/linked"
			l.small(root)
			l.git("worktree", "add", "-q", "--detach", root)
			return root, root
		},
	}
	// Without room for a store of ours in the user's git directory it is in the cache; and what
	// was collected needs the cache no more.
	spared := map[string]string{"git directory": "begun", "cache": "merged"}
	grow := int64(long(4, 2))
	if grow == 1 { // once more on overlay copies
		grow = 16
	}
	moments := []string{"begun", "edited", "merged"}
	for i, place := range slices.Sorted(maps.Keys(places)) {
		prepare := places[place]
		for k, when := range moments {
			if k != i && long(0, 1) == 0 {
				continue // a sample: each place, and each moment, once
			}
			failed, done := 0, false
			for free := int64(0); !done; free = max(grow*free, 16<<10) {
				t.Run(fmt.Sprintf("%s/once %s/%d", place, when, free), func(t *testing.T) {
					done = true // unless there was not enough
					l := newLab(t)
					l.write(l.root, ".git/info/exclude", "ballast\n")
					if !fullDisk(l, prepare, when, free) {
						done = false
						failed++
					}
				})
				if free > 16<<20 {
					t.Fatalf("%s, once %s: it fails with %d free", place, when, free)
				}
			}
			if needed := spared[place] != when; needed != (failed > 0) {
				t.Errorf("%s, once %s: failed %d times, want that it fails: %v", place, when, failed, needed)
			}
		}
	}
}

// fullDisk does a run with a disk that gets full at some time; it reports whether that was done.
func fullDisk(l *lab, prepare func(l *lab) (root, disk string), when string, free int64) bool {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, 40<<10)
		for i := range b {
			b[i] = byte(random.UintN(256))
		}
		return string(b)
	}
	for _, name := range []string{"a", "b", "dir/c"} {
		l.write(l.root, name, text())
	}
	l.commit()
	root, disk := prepare(l)
	before := l.files(root, "ballast")
	after := maps.Clone(before)
	edit := map[string]string{"a": text(), "new/file": text() + text() + text()}
	for name, text := range edit {
		after[name] = fmt.Sprintf("false %q", text)
	}
	delete(after, "dir/c")
	edited := false
	full := func(now string) {
		if now == when {
			l.fill(disk, free)
		}
	}
	r := l.openAt(root, worktree.Options{Session: "full"})
	err := func() error {
		full("begun")
		s, err := r.Tree().Snapshot(l.Context())
		if err != nil {
			return err
		}
		c, err := r.Copy(l.Context(), s, "0.1")
		if err != nil {
			return err
		}
		l.madeOfLayers(c)
		end, err := attach(l.Context(), c, os.Getenv("HOME"))
		if err != nil {
			return err
		}
		for name, text := range edit {
			at := filepath.Join(c.Root, name)
			if err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755)); err == nil {
				err = os.WriteFile(at, []byte(text), 0o644)
			}
		}
		err = errors.Join(err, os.Remove(c.Root+"/dir/c"))
		edited = err == nil
		end()
		c.Attach("")
		if err != nil {
			return err // the writer's own
		}
		full("edited")
		ch, err := c.Collect(l.Context(), "work\n")
		if err != nil {
			return err
		}
		merged, err := r.Merge(l.Context(), s.Commit, ch)
		if err != nil {
			return err
		}
		full("merged")
		if _, err = c.ApplyTo(l.Context(), r.Tree(), s.Commit, merged); err != nil {
			return err
		}
		_, err = c.Remove(l.Context())
		return err
	}()
	if err != nil && !tellsFull(err) {
		l.Errorf("error = %v, want that no space is left", err)
	}
	now := l.files(root, "ballast")
	applied := maps.Equal(now, after)
	if !applied {
		same(l, "tree neither before nor after", now, before)
	}
	_, closed := r.Close(l.Context()) // what it cannot keep now stays for the next run
	same(l, "tree after the run", l.files(root, "ballast"), now)
	l.remove(disk, "ballast")

	next := l.openAt(root, worktree.Options{Session: "next"})
	if _, err := next.Recover(l.Context()); err != nil {
		l.Errorf("Recover = %v, want no error", err)
	}
	kept := l.kept(next, "full")
	if edited && !applied && (len(kept) != 1 || len(kept[0].Files) != 3) {
		l.Errorf("after %v and %v, Kept = %+v, want the work", err, closed, kept)
	}
	if !applied && len(kept) == 1 {
		if _, err := next.MergeKept(l.Context(), kept[0]); err != nil {
			l.Errorf("MergeKept = %v, want no error", err)
		}
		if edited {
			same(l, "tree once there is room", l.files(root), after)
		}
	}
	l.close(next)
	l.gitIn(root, "fsck", "--strict")
	return err == nil
}

// tellsFull reports whether an error says what is the matter, in the system's words or in one
// of git's.
func tellsFull(err error) bool {
	for _, words := range []string{"no space left on device", "out of diskspace", "unable to write", "unable to create"} {
		if strings.Contains(strings.ToLower(err.Error()), words) {
			return true
		}
	}
	return false
}
