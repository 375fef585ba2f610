package sandbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"skein/sandbox"
)

// An attempt is one row of the hostile suite. It is run outside, where it has to succeed on
// a twin of the files, and then in every kind of box, where it has to fail and to change
// nothing. Both run it in the workspace, with the variables of [world.vars].
type attempt struct {
	name, script string
	// want names the answers that refuse it, see [answers]: one of them is printed. What is
	// absent for another reason is not held.
	want string
	// control is run outside in place of the script where that would do harm there.
	control string
	// root says why only root can do it outside: the control of an ordinary user is left
	// out, the attempt is not.
	root string
	// arrives says that it is not the exit code that counts, but whether something arrives
	// at one of the sockets that the world listens on.
	arrives bool
	// absent says why there is nothing to try on this machine.
	absent string
}

// A world is a piece of the host: what a box must protect, and the workspace.
type world struct {
	root, far string
	program   string // this test, for the calls that no other program makes
	// more are further variables of scripts, arrived counts what came in at sockets since it
	// was called last. The twin has those of its original.
	more    []string
	arrived func() int
	clean   string // the listing of a twin that is as its original
}

// newWorld plants a world, and one just like it for controls.
func newWorld(t *testing.T) (inside, twin *world) {
	t.Helper()
	needProgram(t, "bash")
	needProgram(t, "git")
	inside = &world{root: shownFolder(t), far: t.TempDir()}
	inside.program = self(t, inside.root)
	for path, text := range map[string]string{
		"out/f": "outside\n", "out/d/g": "outside\n", "out/x": "#!/bin/sh\nexit 0\n",
		"work/README.md": "first\n", "work/sub/f": "x\n", "work/.skein/config.yaml": "planted\n", "work/libs/inner/f": "x\n",
		"home/.bashrc": "planted\n",
	} {
		write(t, filepath.Join(inside.root, path), text)
	}
	for _, path := range secretPlaces {
		write(t, filepath.Join(inside.root, "home", path), "planted secret\n")
	}
	write(t, filepath.Join(inside.far, "f"), "far\n")
	bare := outside(t, filepath.Join(inside.root, "work"))
	must(t, bare, "ln -s f ../out/l; git init -q -b main; echo .skein > .git/info/exclude; git -C libs/inner init -q; git -C libs/inner add . && git -C libs/inner commit -qm inner; git add README.md sub && git commit -qm first")
	return inside, &world{root: filepath.Join(shownFolder(t), "twin"), far: t.TempDir(), program: inside.program}
}

// restore makes the twin like its original again.
func (w *world) restore(t *testing.T, original *world) {
	t.Helper()
	if w.clean != "" && w.clean == w.listing(t, "twin") {
		return
	}
	must(t, outside(t, "/"), fmt.Sprintf("rm -rf %[1]s %[2]s/* && mkdir %[1]s && cp -a %[3]s/out %[3]s/work %[3]s/home %[1]s && cp -a %[4]s/. %[2]s/", w.root, w.far, original.root, original.far))
	w.clean = w.listing(t, "twin")
}

func (w *world) work() string { return filepath.Join(w.root, "work") }

// vars are what scripts know of the world. The function try makes a call that no program
// makes, see [tries].
func (w *world) vars() []string {
	return append(slices.Concat(hermetic, w.more),
		"OUT="+filepath.Join(w.root, "out"), "FAR="+w.far, "PLANTED="+filepath.Join(w.root, "home"),
		`BASH_FUNC_try%%=() { `+helper+`=try "`+w.program+`" "$@"; }`)
}

// shownFolder makes a folder that boxes can show in place: on what is shown in /tmp lies
// their own.
func shownFolder(t *testing.T) string {
	t.Helper()
	for _, place := range []string{os.Getenv(placeForNobody), "/srv", "/opt", "/var/lib", os.Getenv("HOME")} {
		if !filepath.IsAbs(place) {
			continue
		}
		if dir, err := os.MkdirTemp(place, "skein-test-"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	need(t, false, "no folder outside of /tmp can be made")
	return ""
}

// boxes opens one of each kind on the world, which shows what is to be protected of it: for a reader, a writer and, when this is root,
// a writer in somebody else's tree.
func (w *world) boxes(t *testing.T) map[string]*sandbox.Box {
	t.Helper()
	p := sandbox.Policy{
		Workspace: w.work(), Hidden: []string{".skein"}, Git: [2]string{"w", "w@example.org"},
		Readable: []string{filepath.Join(w.root, "out"), filepath.Join(w.root, "home"), w.program},
	}
	boxes := map[string]*sandbox.Box{"reader": open(t, p)}
	p.Writable = true
	boxes["writer"] = open(t, p)
	return boxes
}

// answers are what programs print of an answer of the kernel. "nothing" is a script's own word
// for what it looked for and is not there.
var answers = map[string]string{
	"EROFS": "read-only file system", "EPERM": "operation not permitted", "EACCES": "permission denied",
	"ENOENT": "no such file or directory", "ESRCH": "no such process", "EXDEV": "invalid cross-device link", "EBUSY": "busy",
	"ENOSYS": "not implemented", "EAFNOSUPPORT": "address family not supported", "EIO": "input/output error",
	"EOPNOTSUPP": "operation not supported",
	"superuser":  "must be superuser", "nothing": "found nothing",
}

// refused reports whether a text tells one of the answers that are named.
func refused(text, names string) bool {
	return slices.ContainsFunc(strings.Fields(names), func(name string) bool {
		return answers[name] != "" && strings.Contains(strings.ToLower(text), answers[name])
	})
}

// hostile tries all rows, in every kind of box. What the world has besides files is set up
// before any box is opened.
func hostile(t *testing.T, rows []attempt, setUp ...func(*testing.T, *world)) {
	t.Helper()
	inside, twin := newWorld(t)
	t.Setenv("HOME", filepath.Join(inside.root, "home"))
	inside.arrived = func() int { return 0 }
	for _, f := range setUp {
		f(t, inside)
	}
	twin.more, twin.arrived = inside.more, inside.arrived
	for _, row := range rows {
		t.Run("control/"+row.name, func(t *testing.T) { row.outside(t, twin, inside) })
	}
	owners := []int{os.Geteuid()}
	if owners[0] == 0 {
		owners = append(owners, nobody) // root in somebody else's tree
	}
	for _, owner := range owners {
		inside.give(t, owner)
		for kind, box := range inside.boxes(t) {
			t.Run(fmt.Sprintf("%s of %d", kind, owner), func(t *testing.T) {
				before := inside.listing(t, kind)
				for _, row := range rows {
					t.Run(row.name, func(t *testing.T) {
						if row.absent != "" {
							t.Skip(row.absent)
						}
						row.inside(t, box, inside)
						if after := inside.listing(t, kind); after != before {
							t.Errorf("%s changed the host: %s", row.script, difference(before, after))
							before = after
						}
					})
				}
				work(t, box, kind)
			})
		}
	}
}

func (a attempt) inside(t *testing.T, box *sandbox.Box, w *world) {
	out, exit := sh(t, box, a.script, w.vars()...)
	if !a.arrives && (exit == 0 || exit == 126 || exit == 127 || !refused(out, a.want)) {
		t.Errorf("%s: exit %d, want it refused for %q; output:\n%s", a.script, exit, a.want, out)
	}
	if n := w.arrived(); n != 0 {
		t.Errorf("%s: %d messages or connections left the box", a.script, n)
	}
	t.Logf("exit %d: %s", exit, strings.TrimSpace(out))
}

func (a attempt) outside(t *testing.T, twin, original *world) {
	switch {
	case a.absent != "":
		t.Skip(a.absent)
	case a.root != "" && os.Geteuid() != 0:
		t.Skip("this control needs root: " + a.root)
	}
	twin.restore(t, original)
	script := a.script
	if a.control != "" {
		script = a.control
	}
	if out, exit := sh(t, outside(t, twin.work()), script, twin.vars()...); exit != 0 {
		t.Errorf("%s: exit %d outside of a box, want 0; output:\n%s", script, exit, out)
	}
	if n := twin.arrived(); a.arrives && n == 0 {
		t.Errorf("%s: nothing arrived outside of a box", script)
	}
}

// work is what goes on as before in a box from which all was tried.
func work(t *testing.T, box *sandbox.Box, kind string) {
	t.Helper()
	const script = "cat README.md; git status --short -uno; git log --format=%s; f=$(mktemp) && echo t > $f && cat $f; echo h > ~/h && cat ~/h"
	if got := must(t, box, script); got != "first\nfirst\nt\nh\n" {
		t.Errorf("afterwards %s = %q", script, got)
	}
	if kind == "writer" {
		must(t, box, "echo second >> README.md; git diff | grep -q second; git -C . status --short | grep -q README.md; echo first > README.md")
	}
}

// give makes the whole world somebody's.
func (w *world) give(t *testing.T, owner int) {
	t.Helper()
	if owner == os.Geteuid() {
		return
	}
	for _, root := range []string{w.root, w.far} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, owner, owner)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// listing tells all that can be changed about the files of the world, save those that a
// writer may change. The time of a change of the inode tells of those of the content.
func (w *world) listing(t *testing.T, kind string) string {
	t.Helper()
	var text strings.Builder
	for _, root := range []string{w.root, w.far} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, inWork := strings.CutPrefix(path, w.work())
			if kind == "writer" && inWork && !strings.Contains(rel, "/.git") && !strings.Contains(rel, "/.skein") {
				return nil
			}
			var s unix.Stat_t
			if err := unix.Lstat(path, &s); err != nil {
				return err
			}
			names := make([]byte, 1024)
			n, err := unix.Llistxattr(path, names)
			if err != nil && !errors.Is(err, unix.ENOTSUP) {
				return err
			}
			_, err = fmt.Fprintln(&text, path, s.Ino, s.Mode, s.Uid, s.Gid, s.Nlink, s.Size, s.Mtim, s.Ctim, string(names[:max(n, 0)]))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// difference lists the lines that only one of two listings has.
func difference(before, after string) string {
	var list []string
	for _, line := range strings.Split(before, "\n") {
		if !strings.Contains(after, line) {
			list = append(list, "- "+line)
		}
	}
	for _, line := range strings.Split(after, "\n") {
		if !strings.Contains(before, line) {
			list = append(list, "+ "+line)
		}
	}
	return strings.Join(list, "\n")
}
