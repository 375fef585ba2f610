package sandbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/sandbox"
)

// place makes a folder of projects that is none of the system's: in the root of this machine
// where that can be, else where nobody may make one.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/", "skein-test-")
	if err != nil {
		return shownFolder(t)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// program writes a script that can be run.
func program(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Of what is not the system's a box shows what is named: by PATH, by the variables of
// toolchains, by the policy. Another project beside the workspace is not there.
func TestOthersAreNotThere(t *testing.T) {
	dir := place(t)
	write(t, filepath.Join(dir, "work/f"), "mine\n")
	write(t, filepath.Join(dir, "other/f"), "another's\n")
	write(t, filepath.Join(dir, "third/f"), "third\n")
	program(t, filepath.Join(dir, "tools/kit-1/bin/kit"), "cat $(dirname $0)/../lib/data")
	write(t, filepath.Join(dir, "tools/kit-1/lib/data"), "data\n")
	write(t, filepath.Join(dir, "tools/kit-1/notes"), "not a tool's")
	link(t, "kit-1", filepath.Join(dir, "tools/kit"))
	program(t, filepath.Join(dir, "jdk/bin/java"), "echo java")
	program(t, filepath.Join(dir, "direct"), "echo broad")
	link(t, filepath.Join(dir, "third"), filepath.Join(dir, "soft"))
	env := []string{
		"PATH=" + dir + "/tools/kit/bin:" + dir + ":/:" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "JAVA_HOME=" + dir + "/jdk", "VIRTUAL_ENV=" + dir,
	}
	p := sandbox.Policy{Workspace: filepath.Join(dir, "work"), Env: env, Readable: []string{filepath.Join(dir, "soft")}}
	box := open(t, p)
	const script = "cat f; kit; $JAVA_HOME/bin/java; cat ../soft/f"
	if got, want := must(t, box, script), "mine\ndata\njava\nthird\n"; got != want {
		t.Errorf("%s = %q, want %q", script, got, want)
	}
	must(t, outside(t, p.Workspace), "cat ../other/f ../tools/kit/notes ../direct")
	if got, want := must(t, box, "find "+dir+" -type f | sort"), strings.NewReplacer("~", dir).Replace("~/jdk/bin/java\n~/third/f\n~/tools/kit-1/bin/kit\n~/tools/kit-1/lib/data\n~/work/f\n"); got != want {
		t.Errorf("below %s a box shows\n%swant\n%s", dir, got, want)
	}
	write(t, filepath.Join(dir, "late/f"), "late")
	for _, script := range []string{"ls ../other", "cat ../late/f", "ls " + filepath.Dir(dir) + " | grep -v " + filepath.Base(dir) + " | grep test", "echo x > ../x", "echo x > ../third/f", "ls -A /var/log /var/spool /mnt/* | grep -v : | grep ."} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0, want a failure; output:\n%s", script, out)
		}
	}
	if got := must(t, box, "echo x > /var/tmp/x && cat /tmp/x; ls / | grep -c ."); !strings.HasPrefix(got, "x\n") {
		t.Errorf("/var/tmp of a box: %q, want that it is its own", got)
	}
}

// The git directory of a linked worktree is shown wherever it is, other worktrees are not.
func TestWorktreeElsewhere(t *testing.T) {
	dir := place(t)
	needProgram(t, "git")
	must(t, outside(t, dir), "git init -q -b main main && git -C main commit -q --allow-empty -m first && git -C main worktree add -q ../wt && echo x > main/f && git clone -q --bare main bare.git && git -C bare.git worktree add -q ../wt2")
	for _, name := range []string{"wt", "wt2"} {
		if got := must(t, open(t, sandbox.Policy{Workspace: filepath.Join(dir, name)}), "git log --format=%s; git status --short; cat ../main/f 2>/dev/null || echo none"); got != "first\nnone\n" {
			t.Errorf("in %s: %q, want its history and nothing else of the first one", name, got)
		}
	}
}

// No workspace names a folder of the host and is shown it: neither by a git directory that it
// brings, nor by one that git did not make.
func TestWorkspaceNamesOthers(t *testing.T) {
	dir := place(t)
	needProgram(t, "git")
	bare := outside(t, dir)
	must(t, bare, "git init -q -b main main && git -C main commit -q --allow-empty -m first && git -C main worktree add -q ../own && mkdir plain other && echo plan > other/plan.txt && git clone -q --bare main other/bare")
	work := filepath.Join(dir, "work")
	names := func(gitdir string) string {
		return "mkdir -p work && cd work && echo 'gitdir: " + gitdir + "' > .git; "
	}
	for name, make := range map[string]string{
		"relative":                       names("./evil") + "mkdir evil && echo ../.git > evil/gitdir && echo ../../other > evil/commondir",
		"looks like one":                 names("./evil") + "mkdir evil && echo ref: refs/heads/main > evil/HEAD && echo ../.git > evil/gitdir && echo ../../other > evil/commondir",
		"of a real one":                  names("./evil") + "mkdir evil && echo ref: refs/heads/main > evil/HEAD && echo ../.git > evil/gitdir && echo ../../other/bare > evil/commondir",
		"among worktrees":                names("./worktrees/evil") + "mkdir -p worktrees/evil && echo ref: refs/heads/main > worktrees/evil/HEAD && echo ../../.git > worktrees/evil/gitdir && echo ../../../other/bare > worktrees/evil/commondir",
		"worktrees are a link":           names("./evil") + "mkdir -p evil w && echo ref: refs/heads/main > evil/HEAD && echo ../.git > evil/gitdir && echo ../l > evil/commondir && ln -s ../other/bare l",
		"by a link":                      names("./evil") + "ln -s ../other/bare evil",
		"of another worktree":            names("../main/.git/worktrees/own"),
		"outside, but no git directory":  names("../plain") + "echo ../work/.git > ../plain/gitdir; echo ../other > ../plain/commondir; echo ref: refs/heads/main > ../plain/HEAD",
		"outside, of none that git made": names("../plain") + "echo ../work/.git > ../plain/gitdir; echo ../other/bare > ../plain/commondir; echo ref: refs/heads/main > ../plain/HEAD",
	} {
		must(t, bare, "rm -rf work; "+make)
		script := "ls -A " + dir + "; cat ../other/plan.txt ../other/bare/HEAD ../main/.git/HEAD ../plain/HEAD 2>/dev/null; true"
		if got := must(t, open(t, sandbox.Policy{Workspace: work}), script); got != "work\n" {
			t.Errorf("%s: a box shows %q, want the workspace alone", name, got)
		}
	}
	if got := must(t, open(t, sandbox.Policy{Workspace: filepath.Join(dir, "own")}), "cat ../main/.git/HEAD"); got != "ref: refs/heads/main\n" {
		t.Errorf("control: in a worktree that git made: %q, want its git directory", got)
	}
}

// The git directory of a submodule is shown where the workspace is the submodule.
func TestSubmoduleAlone(t *testing.T) {
	dir := place(t)
	needProgram(t, "git")
	must(t, outside(t, dir), "git init -q -b main lib && git -C lib commit -q --allow-empty -m first && git init -q -b main super && git -C super -c protocol.file.allow=always submodule --quiet add ../lib sub && echo x > super/f")
	if got := must(t, open(t, sandbox.Policy{Workspace: filepath.Join(dir, "super/sub")}), "git log --format=%s; git status --short; cat ../f 2>/dev/null || echo none"); got != "first\nnone\n" {
		t.Errorf("in a submodule: %q, want its history and nothing else", got)
	}
}

// A workspace among programs of the system hides the projects beside it.
func TestProjectsInOpt(t *testing.T) {
	dir, err := os.MkdirTemp("/opt", "skein-test-")
	if err != nil {
		t.Skip("no place for a project: only root has one")
	}
	alone := dir + "-alone"
	t.Cleanup(func() { _, _ = os.RemoveAll(dir), os.RemoveAll(alone) })
	for _, path := range []string{dir + "/work/f", dir + "/other/f", dir + "/.git/HEAD", alone + "/f"} {
		write(t, path, "f\n")
	}
	program(t, dir+"/tools/bin/tool", "echo tool")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for _, row := range []struct{ workspace, path, script, want string }{
		{dir + "/work", dir + "/tools/bin", "cat f; tool; ls .. " + alone, "f\ntool\n..:\ntools\nwork\n\n" + alone + ":\nf\n"},
		{alone, "", "cat f; ls -A " + dir, "f\n"},
		{alone, dir + "/tools/bin", "cat f; tool; ls " + dir, "f\ntool\nother\ntools\nwork\n"}, // it holds tools
		{t.TempDir(), "", "cat " + dir + "/work/f", "f\n"},
	} {
		box := open(t, sandbox.Policy{Workspace: row.workspace, Env: append(env, "PATH="+row.path+":"+os.Getenv("PATH"))})
		if got := must(t, box, row.script); got != row.want {
			t.Errorf("in %s with %q on PATH: %s = %q, want %q", row.workspace, row.path, row.script, got, row.want)
		}
	}
}

// What is hidden stays hidden when the host replaces it, and what is made later under a hidden
// name is not seen.
func TestHiddenStaysHidden(t *testing.T) {
	dir := shownFolder(t)
	for _, name := range []string{"token", "sub/key", "sub/open", "folder/f", "open"} {
		write(t, filepath.Join(dir, name), "old "+name+"\n")
	}
	if err := os.Chmod(filepath.Join(dir, "sub"), 0o750); err != nil {
		t.Fatal(err)
	}
	var hidden []string
	for _, name := range []string{"token", "sub/key", "folder", "late", "sub/late", "deep/in/it"} {
		hidden = append(hidden, filepath.Join(dir, name))
	}
	workspace := t.TempDir()
	box := open(t, sandbox.Policy{Workspace: workspace, Readable: []string{dir}, Hidden: hidden})
	bare := outside(t, dir)
	const open = "cat open sub/open; stat -c %a . sub; ls -A . sub; cat token sub/key folder/f late sub/late deep/in/it 2>/dev/null; true"
	const want = "old open\nold sub/open\n755\n750\n.:\nopen\nsub\n\nsub:\nopen\n"
	for _, moment := range []string{"at the opening", "replaced"} {
		if got := must(t, box, "cd "+dir+" && "+open); got != want {
			t.Errorf("%s a box shows %q, want %q", moment, got, want)
		}
		must(t, bare, "for f in token sub/key; do echo new $f > n && mv n $f; done; mv folder gone; mkdir folder; mv gone/f folder; rm -r gone; echo l > late; echo l > sub/late; mkdir -p deep/in; echo l > deep/in/it")
	}
	if got := must(t, bare, "cat token sub/key folder/f late sub/late deep/in/it"); got != "new token\nnew sub/key\nold folder/f\nl\nl\nl\n" {
		t.Errorf("control: %q outside of a box", got)
	}
}

// To commands that are root, what only root may read in the system's folders is not there.
func TestOnlyRootsFiles(t *testing.T) {
	for _, tree := range []string{"/etc", "/usr/local/etc", "/opt"} {
		t.Run(tree, func(t *testing.T) { onlyRootsFiles(t, tree) })
	}
}

func onlyRootsFiles(t *testing.T, tree string) {
	if os.Geteuid() != 0 {
		t.Skip("only root has such files")
	}
	if _, err := os.Stat(tree); errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(tree) })
	}
	dir, err := os.MkdirTemp(tree, "skein-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, mode := range map[string]os.FileMode{"open": 0o644, "closed": 0o640, "d/open": 0o644, "d/closed": 0o600, "secret/f": 0o644} {
		write(t, filepath.Join(dir, name), name+"\n")
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "cd " + dir + "; cat open closed d/open d/closed secret/f; grep -c : /etc/passwd >/dev/null && cat /etc/hosts"
	hosts := read(t, "/etc/hosts")
	if got, want := must(t, outside(t, dir), script), "open\nclosed\nd/open\nd/closed\nsecret/f\n"+hosts; got != want {
		t.Errorf("control: %q outside of a box, want %q", got, want)
	}
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	if got, want := must(t, box, "{ "+script+"; } 2>/dev/null"), "open\nd/open\n"+hosts; got != want {
		t.Errorf("%s = %q, want %q", script, got, want)
	}
	if out, exit := sh(t, box, "ls /etc/shadow || cat "+dir+"/closed || ls /var/log"); exit == 0 {
		t.Errorf("what is root's is there: %q", out)
	}
}
