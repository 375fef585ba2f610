package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/sandbox"
)

// homeFolder makes a home that no box replaces anyway, as those below /tmp are.
func homeFolder(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"/srv", "/opt", "/var/lib"} {
		dir, err := os.MkdirTemp(parent, "skein-home-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Skip("no place for a home: only root has one")
	return ""
}

// Of a home only the workspace and what toolchains need is seen.
func TestHome(t *testing.T) {
	home := homeFolder(t)
	for name, text := range map[string]string{
		"other/f": "another project", "Documents/d": "a document", ".config/app/token": "a key",
		"go/pkg/mod/m/x.go": "a module", "go/src/p/x.go": "another project",
		".local/share/app/token": "a key", "bin/own": "shown: it is on PATH", "share/token": "a key",
		".local/bin/tool": "#!/bin/sh\necho tool\n", "apps/kit/bin/kit": "#!/bin/sh\ncat $(dirname $0)/../lib/data\n", "apps/kit/lib/data": "data\n", "apps/other": "not seen",
		"work/f": "of the workspace\n",
	} {
		write(t, filepath.Join(home, name), text)
	}
	for _, program := range []string{".local/bin/tool", "apps/kit/bin/kit"} {
		if err := os.Chmod(filepath.Join(home, program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link(t, home, filepath.Join(home, ".rustup")) // would show all of it
	needProgram(t, "git")
	must(t, outside(t, home), "git init -q -b main main && git -C main commit -q --allow-empty -m first && git -C main worktree add -q ../wt && cp -r work thief && cp wt/.git thief/.git")
	path := "PATH=" + home + "/.local/bin:" + home + "/bin:" + home + "/apps/kit/bin:" + os.Getenv("PATH")
	at := func(workspace string, uid int) *sandbox.Box {
		dir := filepath.Join(home, workspace)
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		return open(t, sandbox.Policy{Workspace: dir, Writable: true, Env: []string{path, "HOME=" + home}})
	}
	for _, uid := range []int{os.Geteuid(), nobody} { // the second as root only
		box := at("work", uid)
		for _, row := range []struct{ script, want string }{
			{"cat f; tool; kit; cat " + home + "/go/pkg/mod/m/x.go", "of the workspace\ntool\ndata\na module"},
			{"cd " + home + " && echo $(find . -type f | sort)", "./.local/bin/tool ./apps/kit/bin/kit ./apps/kit/lib/data ./bin/own ./go/pkg/mod/m/x.go ./work/f\n"},
			{"ls " + filepath.Dir(home) + "/" + filepath.Base(home) + "/.. >/dev/null; echo changed > g && cat g && rm g", "changed\n"},
		} {
			if got := must(t, box, row.script); got != row.want {
				t.Errorf("as %d: %s: %q, want %q", uid, row.script, got, row.want)
			}
		}
		for _, script := range []string{"echo x > " + home + "/x", "mkdir " + home + "/other", "echo x > " + home + "/.local/bin/tool", "ls /home/* | grep -q ."} {
			if out, exit := sh(t, box, script); exit == 0 {
				t.Errorf("as %d: %s: exit 0, want a failure; output:\n%s", uid, script, out)
			}
		}
	}
	if got := must(t, at("wt", os.Geteuid()), "git log --format=%s; git status --short; ls "+home+"/main"); got != "first\n" {
		t.Errorf("in a linked worktree: %q, want its history and nothing else of the first one", got)
	}
	if out, exit := sh(t, at("thief", os.Geteuid()), "git log || ls "+home+"/main"); exit == 0 {
		t.Errorf("a workspace that names another's git directory: exit 0, want a failure; output:\n%s", out)
	}
	if got := must(t, at(".", os.Geteuid()), "cat other/f; ls -d .[a-z]* | wc -l"); !strings.HasPrefix(got, "another project") {
		t.Errorf("with the home as the workspace: %q, want its files", got)
	}
}

// The git directory of a linked worktree is seen as it changes, also where a folder in it is hidden.
func TestLinkedGitDirIsLive(t *testing.T) {
	needProgram(t, "git")
	dir := t.TempDir()
	out := outside(t, dir)
	must(t, out, "git init -q -b main main && git -C main commit -q --allow-empty -m first && git -C main worktree add -q ../wt && mkdir main/.git/own && touch main/.git/own/lock")
	box := open(t, sandbox.Policy{Workspace: filepath.Join(dir, "wt"), Hidden: []string{filepath.Join(dir, "main/.git/own")}})
	const script = "git log --format=%s && test ! -e $(git rev-parse --git-common-dir)/own/lock"
	for _, want := range []string{"first\n", "second\nfirst\n", "third\nsecond\nfirst\n"} {
		if got := must(t, box, script); got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
		next := map[string]string{"first\n": "second", "second\nfirst\n": "third"}[want]
		must(t, out, "git -C wt commit -q --allow-empty -m '"+next+"' --allow-empty-message && git -C main pack-refs --all && git -C main config x.y "+mark())
	}
}

// A home in a folder of the system's is covered wherever it lies.
func TestHomeAmongTheSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("no place for a home: only root has one")
	}
	for _, tree := range []string{"/usr/local", "/etc", "/opt"} {
		base, err := os.MkdirTemp(tree, "skein-home-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(base) })
		if err := os.Chmod(base, 0o755); err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(base, "u")
		write(t, filepath.Join(base, "beside"), "of the system\n")
		write(t, filepath.Join(home, "other/f"), "another project")
		program(t, filepath.Join(home, ".local/bin/tool"), "echo tool")
		path := "PATH=" + home + "/.local/bin:" + os.Getenv("PATH")
		box := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: []string{"HOME=" + home, path}})
		if got, want := must(t, box, "tool; cd "+base+"; cat beside; find . -type f | sort"), "tool\nof the system\n./beside\n./u/.local/bin/tool\n"; got != want {
			t.Errorf("in %s: %q, want %q", tree, got, want)
		}
	}
	for _, home := range []string{"/usr/sbin", "/usr/local", "/var/cache/man", "/usr"} { // of users such as daemon
		must(t, open(t, sandbox.Policy{Workspace: t.TempDir(), Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}), "ls /usr/sbin/* >/dev/null && ls -d /usr/local/*")
	}
}

// A home behind a link is found by both names.
func TestHomeBehindLink(t *testing.T) {
	base := homeFolder(t)
	home, soft := filepath.Join(base, "data/u"), filepath.Join(base, "home/u")
	write(t, filepath.Join(home, ".local/bin/tool"), "#!/bin/sh\necho tool\n")
	write(t, filepath.Join(home, "other"), "not seen")
	write(t, filepath.Join(base, "home/other"), "seen: nobody says that it is a home")
	if err := os.Chmod(filepath.Join(home, ".local/bin/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, home, soft)
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Env: []string{"HOME=" + soft, "PATH=" + soft + "/.local/bin:" + os.Getenv("PATH")}})
	if got := must(t, box, "tool; cat "+soft+"/other 2>/dev/null || ls "+home); got != "tool\n" {
		t.Errorf("a home behind a link: %q, want the tool alone", got)
	}
}

// In a workspace that is or holds the home, no command moves what is hidden to where the next
// box would show it.
func TestHiddenCannotBeMoved(t *testing.T) {
	base := homeFolder(t)
	home := filepath.Join(base, "u")
	write(t, filepath.Join(home, ".config/gh/hosts.yml"), "a key")
	write(t, filepath.Join(home, ".config/app/settings"), "settings\n")
	write(t, filepath.Join(home, ".ssh/id"), "a key")
	for _, workspace := range []string{home, base} {
		p := sandbox.Policy{Workspace: workspace, Writable: true, Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
		up := strings.TrimPrefix(home+"/", workspace+"/")
		work := "cd ./" + up + " && echo more >>.config/app/settings && mv .config/app . && cat app/settings && mv app .config/app"
		if got := must(t, open(t, p), work); got != "settings\nmore\n" {
			t.Errorf("in %s: work beside what is hidden: %q", workspace, got)
		}
		write(t, filepath.Join(home, ".config/app/settings"), "settings\n")
		// Where mv cannot move it copies what it sees.
		for _, script := range []string{"mv " + up + ".config c2", "mv " + up + ".config/gh c3", "mv " + up + ".ssh c4", "mv u u2"} {
			if out, exit := sh(t, open(t, p), script); exit == 0 {
				t.Errorf("in %s: %s: done, want it refused\n%s", workspace, script, out)
			}
			if out, exit := sh(t, open(t, p), "grep -rs 'a key' ."); exit == 0 {
				t.Errorf("in %s: after %s the next box shows %q", workspace, script, out)
			}
		}
		write(t, filepath.Join(home, ".config/app/settings"), "settings\n")
	}
	if text, err := os.ReadFile(filepath.Join(home, ".config/gh/hosts.yml")); err != nil || string(text) != "a key" {
		t.Errorf("what was hidden is %q, %v, want it as it was", text, err)
	}
}

// A place of secrets is no workspace, for commands or for file tools; neither is what the
// harness keeps, to change it.
func TestPlacesThatAreNoWorkspace(t *testing.T) {
	home := homeFolder(t)
	for _, row := range []struct {
		dir      string
		writable bool
		refused  bool
	}{
		{".ssh", false, true},
		{".ssh/keys", true, true},
		{".config/gh", false, true},
		{"project/.skein/sessions", true, true},
		{"project/.skein/sessions", false, false},
		{".local/state/skein", false, true},
		{".cache/skein/copies/c", true, false}, // a writer's copy
		{"project/.ssh", true, false},
		{".config", false, false},
	} {
		dir := filepath.Join(home, row.dir)
		write(t, filepath.Join(dir, "f"), "")
		p := sandbox.Policy{Workspace: dir, Writable: row.writable, Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
		box, err := sandbox.Open(t.Context(), p)
		if err == nil {
			_ = box.Close()
		}
		files, ferr := sandbox.OpenFiles(p)
		if ferr == nil {
			_ = files.Close()
		}
		if (err != nil) != row.refused || (ferr != nil) != row.refused {
			t.Errorf("%s, writable %v: box %v, files %v, want refused: %v", row.dir, row.writable, err, ferr, row.refused)
		}
	}
}
