package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"skein/sandbox"
)

// A writer sees its copy where the parent's workspace is, and nothing of the parent's.
func TestWriterWorksAtTheParentsPath(t *testing.T) {
	parent, copied := repository(t), repository(t)
	write(t, filepath.Join(parent, "only-parent"), "p")
	write(t, filepath.Join(copied, "only-copy"), "c")
	borrowed := filepath.Join(parent, ".git/borrowed") // shown inside the writer's own git directory
	write(t, filepath.Join(copied, ".git/borrowed/x"), "mount point")
	box := open(t, sandbox.Policy{
		Workspace: copied, View: parent, Writable: true, GitDir: filepath.Join(copied, ".git"), Git: [2]string{"w", "w@example.org"},
		ReadOnly: []sandbox.Mount{{Host: filepath.Join(parent, ".git/objects"), Path: borrowed}},
	})

	must(t, box, "echo mine > README.md && rm sub/f && echo n > new && chmod +x new && mv new newer")
	if got := read(t, filepath.Join(parent, "README.md")); got != "first\n" {
		t.Errorf("the parent's file is %q, want it as it was", got)
	}
	if got := read(t, filepath.Join(copied, "README.md")); got != "mine\n" {
		t.Errorf("the copy's file is %q, want %q", got, "mine\n")
	}
	if got := must(t, box, "pwd; ls"); got != parent+"\nREADME.md\nnewer\nonly-copy\nsub\n" {
		t.Errorf("the writer sees %q", got)
	}
	must(t, box, "git add -A && git commit -qm second && ls -d .git/borrowed/??")
	if out, exit := sh(t, box, "echo x > .git/borrowed/x"); exit == 0 {
		t.Errorf("a borrowed object store was written; output:\n%s", out)
	}
	if got := must(t, outside(t, copied), "git log --format=%s"); got != "second\nfirst\n" {
		t.Errorf("log of the copy = %q, want second, first", got)
	}
	if got := must(t, outside(t, parent), "git log --format=%s; git status --short"); got != "first\n?? only-parent\n" {
		t.Errorf("log and status of the parent = %q, want them as they were", got)
	}
}

// The user's .git is closed to a box that may change the workspace, folder or file.
func TestWritableWorkspaceKeepsGitClosed(t *testing.T) {
	main := repository(t)
	linked := filepath.Join(t.TempDir(), "linked")
	must(t, outside(t, main), "git worktree add -q "+linked)
	for _, dir := range []string{main, linked} {
		// Both lie in /tmp here, where a box shows only what it was told to.
		box := open(t, sandbox.Policy{Workspace: dir, Writable: true, ReadOnly: []sandbox.Mount{{Host: filepath.Join(main, ".git")}}})
		must(t, box, "echo changed >> README.md; git status --short | grep README.md; git diff | grep changed")
		for _, script := range []string{
			"git add README.md", "git commit -am second", "git stash", "git config core.fsmonitor x", "mv .git g", "rm -rf .git", "touch .git",
			"chmod 700 .git", "echo x > $(git rev-parse --git-dir)/config", "echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit",
		} {
			if out, exit := sh(t, box, script); exit == 0 {
				t.Errorf("%s in %s: exit 0, want a failure; output:\n%s", script, dir, out)
			}
		}
		if got := must(t, outside(t, dir), "git log --format=%s; git status --short"); got != "first\n M README.md\n" {
			t.Errorf("log and status of %s = %q", dir, got)
		}
	}
}

func TestHiddenAndReadOnly(t *testing.T) {
	dir, store, empty := filepath.Join(t.TempDir(), "a b'\"\xff"), t.TempDir(), t.TempDir() // a path of any bytes
	write(t, filepath.Join(dir, ".skein/config.yaml"), "secret")
	write(t, filepath.Join(dir, "sub/.skein"), "secret")
	write(t, filepath.Join(dir, "w"), "")
	write(t, filepath.Join(store, "object"), "o\n")
	private := t.TempDir()
	box := open(t, sandbox.Policy{
		Workspace: dir, Writable: true, Hidden: []string{".skein", "sub/.skein", "absent", "w/absent", ".skein", dir + "/.skein", "/dev/null/absent"}, Tmp: private,
		ReadOnly: []sandbox.Mount{{Host: store, Path: empty}, {Host: store}},
	})
	if got := must(t, box, "LC_ALL=C grep -ac '[^b]/[.]skein ' /proc/self/mounts; ls -A .skein; cat "+empty+"/object "+store+"/object; echo t > /tmp/t; echo w > w"); got != "1\no\no\n" {
		t.Errorf("output = %q, want one mount at .skein, the object twice and nothing of .skein", got)
	}
	for _, script := range []string{
		"echo x > .skein/config.yaml", "rm -rf .skein", "mv .skein s", "grep secret sub/.skein", "echo x > sub/.skein", "rm sub/.skein",
		"echo x > " + empty + "/object", "echo x > " + store + "/new",
	} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0, want a failure; output:\n%s", script, out)
		}
	}
	if got := read(t, filepath.Join(dir, ".skein/config.yaml")) + read(t, filepath.Join(private, "t")); got != "secrett\n" {
		t.Errorf("hidden file and file in tmp = %q", got)
	}
}

// Root may work on a tree that is somebody else's: commands run as the owner then.
func TestRootRunsAsTheOwnerOfTheTree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a tree to somebody else")
	}
	dir := repository(t)
	const owner = 1234
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, owner, owner)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil { // the box needs no way in
		t.Fatal(err)
	}
	tmp := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true, Tmp: tmp})
	out := must(t, box, "id -u; echo x > new; echo y >> README.md; git status --short; echo h > ~/h; echo t > /tmp/t; cat ~/h; stat -c %u new")
	if want := "1234\n M README.md\n?? new\nh\n1234\n"; out != want {
		t.Errorf("output = %q, want %q", out, want)
	}
	files, err := sandbox.OpenFiles(sandbox.Policy{Workspace: dir, Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	if err := files.WriteFile("made/by/tool", []byte("t"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, box, "echo u >> made/by/tool; echo v > made/by/command")
}

// A command can fill neither the memory by way of files, nor the disk with one.
func TestFilesAreBounded(t *testing.T) {
	var memory syscall.Sysinfo_t
	if err := syscall.Sysinfo(&memory); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	quarter := int64(memory.Totalram) * int64(memory.Unit) / 4
	for place, want := range map[string]int64{"/tmp": 1 << 30, "~": 1 << 30, "/dev/shm": 1 << 30, "$GOCACHE": quarter} {
		var blocks, size, files int64
		if _, err := fmt.Sscan(must(t, box, "stat -f -c '%b %S %c' "+place), &blocks, &size, &files); err != nil {
			t.Fatal(err)
		}
		if got := blocks * size; got > want+int64(os.Getpagesize()) || got < want/10*9 || files != 256<<10 {
			t.Errorf("%s holds %d bytes in %d files, want %d in %d", place, got, files, want, 256<<10)
		}
	}
	if got := must(t, box, "ulimit -Hc; ulimit -c"); got != "0\n0\n" {
		t.Errorf("limits of core dumps = %q, want 0", got)
	}
	must(t, box, "truncate -s 4G sparse")
	if out, exit := sh(t, box, "truncate -s 5G sparse"); exit == 0 {
		t.Errorf("a file of 5 GiB: exit 0, want a failure; output:\n%s", out)
	}
}

// The go command works in a box on the user's warm cache, and leaves that as it is.
func TestGoInABox(t *testing.T) {
	needProgram(t, "go")
	dir, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.org/m\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "m.go"), "package m\n")
	t.Setenv("GOCACHE", cache)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOTOOLCHAIN", "local")
	const (
		build = "go build -x . 2>&1 | grep -c '/compile '" // 0 and a failure when nothing was compiled
		count = "find . -type f | wc -l"
	)
	if got := must(t, outside(t, dir), build); got != "1\n" {
		t.Fatalf("control: the first build compiled %s packages, want 1", got)
	}
	files := must(t, outside(t, cache), count)
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	if got, _ := sh(t, box, build); got != "0\n" {
		t.Errorf("a build in the box compiled %s packages, want none: the user's cache is warm", got)
	}
	if got := must(t, box, "echo 'package m; var X = 1' > n.go; "+build); got != "1\n" {
		t.Errorf("a build of new code in the box compiled %s packages, want 1", got)
	}
	if got := must(t, outside(t, cache), count); got != files {
		t.Errorf("the user's cache has %s files after the box, %s before", got, files)
	}
}
