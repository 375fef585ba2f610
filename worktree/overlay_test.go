package worktree_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"skein/worktree"
)

// onOverlay is set for a run of these tests in which copies are made by layers.
const onOverlay = "SKEIN_TEST_OVERLAY"

// What is tested of copies holds however they are made: here once more for layers.
func TestOnOverlay(t *testing.T) {
	if os.Getenv(onOverlay) != "" {
		t.Skip("this is that run")
	}
	needLayers(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v")
	cmd.Env = append(os.Environ(), onOverlay+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n--- PASS: TestWritersGitWorks (") {
		t.Errorf("the tests on overlay copies: %v\n%s", err, out)
	}
}

// anyWay leaves a test out of that run that is not about copies: once is enough, but where
// all is tried.
func anyWay(t *testing.T) {
	t.Helper()
	if os.Getenv(onOverlay) != "" && os.Getenv("SKEIN_LONG") == "" {
		t.Skip("how copies are made makes no difference; make test-long runs it")
	}
}

// layers says that there are boxes that show layers, where copies shall be made of them.
func layers() func(context.Context) error {
	if os.Getenv(onOverlay) == "" {
		return nil
	}
	return func(context.Context) error { return nil }
}

func needLayers(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := `cd "$1" && mkdir a b c d && mount -t overlay -o lowerdir=a,upperdir=b,workdir=c,userxattr overlay d`
	out, err := exec.CommandContext(t.Context(), "unshare", "-Urm", "sh", "-c", script, "sh", dir).CombinedOutput()
	need(t, err == nil, fmt.Sprintf("no overlays in user namespaces: %v %s", err, out))
}

// attach shows the layers of a copy as one tree until the test ends.
func (l *lab) attach(c *worktree.Copy) {
	l.Helper()
	end, err := attach(l.Context(), c, l.home())
	l.check(err)
	l.Cleanup(end)
}

// attach shows the layers of a copy as one tree, as its box would, below a folder.
func attach(ctx context.Context, c *worktree.Copy, below string) (end func(), err error) {
	layers := c.Layers()
	if layers == nil {
		return func() {}, nil
	}
	at, err := os.MkdirTemp(below, "mnt")
	if err != nil {
		return nil, err
	}
	cache, _, _ := strings.Cut(layers.Upper, "/copies/")
	short := strings.NewReplacer(cache+"/", "") // names of tests have commas
	lower := short.Replace(strings.Join(append(layers.Above, layers.Base), ":"))
	script := fmt.Sprintf(`mount -t overlay -o 'lowerdir=%s,upperdir=%s,workdir=%s,userxattr' overlay '%s' && mount --bind '%s' '%[4]s/.git' && echo ready && exec cat`,
		lower, short.Replace(layers.Upper), short.Replace(layers.Work), at, c.GitDir)
	cmd := exec.CommandContext(ctx, "unshare", "-Urm", "sh", "-c", script)
	cmd.Dir, cmd.Stderr = cache, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()                                          // killed, if the context ended first
		_ = os.Chmod(filepath.Join(layers.Work, "work"), 0o700) // the kernel's, which only root could remove
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		end()
		return nil, fmt.Errorf("show layers of %s: %q: %w", c.Name, line, err)
	}
	c.Attach(fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, at))
	return end, nil
}

// shown splits a path below a folder that attach shows.
func shown(path string) (pid, inside string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/proc/")
	pid, inside, found := strings.Cut(rest, "/root/")
	return pid, "/" + inside, ok && found
}

// mountsBelow lists what a process sees mounted below a folder.
func mountsBelow(l *lab, pid, folder string) (points []string) {
	l.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if errors.Is(err, os.ErrNotExist) && pid == "self" {
		return nil // no Linux
	}
	l.check(err)
	for line := range strings.Lines(string(text)) {
		const point = 4
		at := strings.ReplaceAll(strings.Fields(line)[point], `\040`, " ")
		if strings.HasPrefix(at, folder+"/") {
			points = append(points, at)
		}
	}
	return points
}

// What the crash suite looks for it would see, if it were there.
func TestMountsAreSeen(t *testing.T) {
	onlyLayers(t)
	l := newLab(t)
	l.commitOne()
	r := l.open(worktree.Options{})
	c := l.copy(r, l.snapshot(r.Tree()), "0.1")
	pid, inside, ok := shown(c.Root)
	if got := mountsBelow(l, pid, l.home()); !ok || len(got) != 2 || got[0] != inside {
		t.Errorf("mounts of an open box = %q, want %s and its git directory", got, inside)
	}
	l.close(r)
}

// stored is where the folder of a copy has what its writer changed.
func stored() string {
	if os.Getenv(onOverlay) != "" {
		return "upper"
	}
	return "tree"
}

// folder is what of the cache belongs to a copy alone.
func folder(c *worktree.Copy) string {
	if l := c.Layers(); l != nil {
		return filepath.Dir(l.Upper)
	}
	return filepath.Dir(c.Root)
}

// Attributes of the user's decide about the bytes of a checkout, where git finds them by
// itself too: after a change there no base shows the old ones.
func TestABaseFollowsTheUsersAttributes(t *testing.T) {
	l := newLab(t)
	l.write(l.root, "a.txt", "1\n2\n")
	l.commit()
	for i, step := range []struct{ attributes, want string }{
		{"*.txt text eol=crlf\n", `false "1\r\n2\r\n"`},
		{"", `false "1\n2\n"`},
	} {
		l.write(os.Getenv("XDG_CONFIG_HOME"), "git/attributes", step.attributes)
		r := l.open(worktree.Options{Session: fmt.Sprint("s", i)})
		c := l.copy(r, l.snapshot(r.Tree()), "0.1")
		if got := l.files(c.Root)["a.txt"]; got != step.want {
			t.Errorf("with attributes %q the copy has %s, want %s", step.attributes, got, step.want)
		}
		l.close(r)
	}
}
