package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/sandbox"
)

// denied runs scripts that must fail in the box and work outside, each after what undoes the
// one before.
func denied(t *testing.T, box, outside runner, undo string, scripts ...string) {
	t.Helper()
	for _, script := range scripts {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("in a box %s: exit 0, want a failure; output:\n%s", script, out)
		}
		must(t, outside, script+" && "+undo)
	}
}

// A git directory is closed by whatever name: bare, or named by a .git file.
func TestGitDirectoriesByOtherNamesAreClosed(t *testing.T) {
	dir := t.TempDir()
	host := outside(t, dir)
	must(t, host, `git init -q --bare bare.git && git init -q --bare deep/er/store && mkdir plain plain/objects
git init -q --separate-git-dir sep.gitdir work && git -C work commit -q --allow-empty -m first
git -C work worktree add -q ../linked && git init -q sub/.git/modules/m && echo gitdir: ../.git/modules/m > sub/m`)
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	must(t, box, "echo x > work/new && git -C work status --short | grep new && git -C linked log --oneline && git -C bare.git rev-parse && echo x > plain/objects/x && echo x > deep/x")
	saved := t.TempDir()
	must(t, host, "cp -a . "+saved)
	denied(t, box, host, "cp -af "+saved+"/. . && rm -rf x evil",
		"echo exit > bare.git/hooks/pre-receive", "git -C bare.git config core.fsmonitor /bin/true", "echo exit > deep/er/store/hooks/x",
		"git -C work config core.fsmonitor /bin/true", "echo x > sep.gitdir/hooks/pre-commit", "echo x > sep.gitdir/worktrees/linked/config.worktree",
		"mv bare.git evil && mv evil bare.git", "rm sep.gitdir/HEAD", "echo gitdir: ../evil > work/.git")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
}

// A box that may change a git directory itself is not opened: neither where the workspace is
// one or lies in one, nor where a scope does.
func TestNoWritableBoxInAGitDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, outside(t, dir), `git init -q repo && git -C repo commit -q --allow-empty -m first && git init -q --bare bare.git
git -C repo push -q ../bare.git HEAD:refs/heads/main && git -C bare.git worktree add -q tree main`)
	for _, row := range []struct {
		workspace, scope string
		refused          bool
	}{
		{"repo/.git", ".", true},
		{"repo/.git/hooks", ".", true},
		{"bare.git", ".", true},
		{"bare.git/hooks", ".", true},
		{".", "bare.git", true},
		{".", "bare.git/hooks", true},
		{"bare.git/tree", ".", false}, // a tree, wherever it lies
		{"repo", ".", false},
		{".", "repo", false},
	} {
		p := sandbox.Policy{Workspace: filepath.Join(dir, row.workspace), Scopes: []string{row.scope}, Writable: true}
		box, err := sandbox.Open(t.Context(), p)
		if err == nil {
			err = box.Close()
		} else if errors.Is(err, sandbox.ErrNoBox) {
			open(t, p) // or skip
		}
		var hint interface{ Hint() string }
		if got := errors.As(err, &hint) && hint.Hint() != "" && strings.Contains(err.Error(), "git directory"); got != row.refused || err != nil && !row.refused {
			t.Errorf("Open(%s, scope %s) = %v, want a refusal with a hint: %t", row.workspace, row.scope, err, row.refused)
		}
		p.Writable = false
		must(t, open(t, p), "true")
		if row.scope != "." {
			continue
		}
		p.Writable = true
		if err := files(t, p).WriteFile("x", nil, 0o644); (err != nil) != row.refused {
			t.Errorf("WriteFile in %s = %v, want a refusal: %t", row.workspace, err, row.refused)
		}
	}
}

// settings are such as other programs obey. Each comes as a file and in a folder.
var settings = []string{
	".claude/settings.json", ".mcp.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json", "opencode.json", ".opencode/plugin/x.js",
	".vscode/tasks.json", ".envrc", ".husky/pre-commit", ".skein/config.yaml", ".helix/languages.toml", ".agent/rules.md", ".dir-locals.el",
	"mise.local.toml", ".mise.local.toml",
}

// What other programs obey is closed to commands and to file tools alike, at any depth.
func TestSettingsAreClosed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range settings {
		write(t, filepath.Join(dir, name), "old\n")
		write(t, filepath.Join(dir, "a/b", name), "old\n")
	}
	free := []string{"AGENTS.md", "CLAUDE.md", "a/GEMINI.md", ".github/workflows/ci.yml", ".gitmodules", "claude/settings.json", "a/x.mcp.json", ".gitignore", "src/mise/x", "config.toml", ".config/x", "config/mise/x"}
	for _, name := range free {
		write(t, filepath.Join(dir, name), "old\n")
	}
	write(t, filepath.Join(dir, ".config/mise/conf.d/x.toml"), "old\n")
	write(t, filepath.Join(dir, "mise/config.toml"), "old\n")
	p := sandbox.Policy{Workspace: dir, Writable: true, Hidden: []string{".skein"}}
	box, host, f := open(t, p), outside(t, dir), files(t, p)
	for _, at := range []string{"", "a/b/"} {
		for _, name := range settings {
			name = at + name
			top := at + strings.Split(strings.TrimPrefix(name, at), "/")[0]
			back := "rm -rf " + top + " moved && mkdir -p " + filepath.Dir(name) + " && echo old > " + name
			for _, script := range []string{"echo evil > " + name, "rm -r " + top, "mv " + top + " moved"} {
				if out, exit := sh(t, box, script); exit == 0 {
					t.Errorf("in a box %s: exit 0, want a failure; output:\n%s", script, out)
				}
			}
			if got := read(t, filepath.Join(dir, name)); got != "old\n" {
				t.Errorf("%s holds %q afterwards", name, got)
			}
			refusedTo(t, f, name)
			refusedTo(t, f, strings.ToUpper(name))
			must(t, host, "echo evil > "+name+" && "+back) // the host may, and the box was open
		}
	}
	if out, exit := sh(t, box, "echo evil > .config/mise/conf.d/x.toml || mv .config/mise moved"); exit == 0 {
		t.Errorf("settings of mise in .config: changed, want them closed; output:\n%s", out)
	}
	refusedTo(t, f, ".config/mise/conf.d/x.toml")
	if out, exit := sh(t, box, "echo evil > mise/config.toml"); exit == 0 {
		t.Errorf("settings of mise: changed, want them closed; output:\n%s", out)
	}
	refusedTo(t, f, "mise/config.toml")
	for _, name := range free {
		must(t, box, "echo new > "+name)
		if err := f.WriteFile(name, []byte("newer\n"), 0o644); err != nil {
			t.Errorf("WriteFile(%s) = %v", name, err)
		}
	}
}

func refusedTo(t *testing.T, f *sandbox.Files, name string) {
	t.Helper()
	err := f.WriteFile(name, []byte("evil\n"), 0o644)
	var hint interface{ Hint() string }
	if !errors.Is(err, os.ErrPermission) || !errors.As(err, &hint) || hint.Hint() == "" {
		t.Errorf("WriteFile(%s) = %v, want a refusal with a hint", name, err)
	}
}

// Settings that are a link: what it leads to is closed, and what is put in its place is told.
func TestLinkedSettings(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "shared/claude/settings.json"), "old\n")
	link(t, "shared/claude", filepath.Join(dir, ".claude"))
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	denied(t, box, outside(t, dir), "echo old > shared/claude/settings.json", "echo evil > .claude/settings.json", "echo evil > shared/claude/settings.json")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
	must(t, box, "echo x > shared/x && rm .claude && mkdir .claude && echo evil > .claude/settings.json")
	if got, want := box.Planted(), []string{".claude"}; !slices.Equal(got, want) {
		t.Errorf("Planted = %q, want %q", got, want)
	}
}

// In a copy of a tree settings can be changed by commands: nobody obeys them there.
func TestSettingsOfACopy(t *testing.T) {
	dir := repository(t)
	write(t, filepath.Join(dir, ".vscode/tasks.json"), "old\n")
	write(t, filepath.Join(dir, "nested/.git/config"), "old\n")
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true, GitDir: filepath.Join(dir, ".git")})
	must(t, box, "echo new > .vscode/tasks.json && ! echo x > nested/.git/config")
}

// A workspace that is the user's home holds what shells and git start with.
func TestStartFilesOfAHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	closed := []string{".bashrc", ".gitconfig", ".config/git/config", ".config/fish/config.fish", ".config/git/credentials.d/x", ".config/deep/.vscode/x"}
	for _, name := range append(closed, "project/.bashrc", ".config/other") {
		write(t, filepath.Join(home, name), "old\n")
	}
	p := sandbox.Policy{Workspace: home, Writable: true}
	box, f := open(t, p), files(t, p)
	for _, name := range closed {
		denied(t, box, outside(t, home), "echo old > "+name, "echo evil > "+name)
		refusedTo(t, f, name)
	}
	refusedTo(t, f, ".zshrc")
	must(t, box, "echo new > project/.bashrc && echo new > .config/other")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
	must(t, box, "echo evil > .zshrc && mkdir -p .config/direnv .config/x/.vscode")
	if got, want := box.Planted(), []string{".config/direnv", ".config/x/.vscode", ".zshrc"}; !slices.Equal(got, want) {
		t.Errorf("Planted = %q, want %q", got, want)
	}
}

// What is made in folders that commands made is told, too, and nothing else is.
func TestPlantedBelowNewFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "old/sub/f"), "")
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true, Hidden: []string{".skein"}})
	must(t, box, "mkdir -p new/deep old/sub/bare/refs old/sub/bare/objects free/objects free/.claudes && echo x > AGENTS.md && echo x > new/HEAD")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
	must(t, box, `git init -q new/deep/er && echo gitdir: /tmp > new/.git && git init -q --bare new/store && echo 'ref: refs/heads/x' > old/sub/bare/HEAD
mkdir new/deep/.skein old/sub/.claude && echo x > .mcp.json && git init -q top && mkdir -p a/b/c/d/e/.vscode`)
	want := []string{
		".mcp.json", "a/b/c/d/e/.vscode", "new/.git", "new/deep/.skein", "new/deep/er/.git", "new/store", "old/sub/.claude", "old/sub/bare", "top/.git",
	}
	for range 2 {
		if got := box.Planted(); !slices.Equal(got, want) {
			t.Errorf("Planted = %q, want %q", got, want)
		}
		_ = box.Close()
	}
	again := open(t, sandbox.Policy{Workspace: dir, Writable: true, Hidden: []string{".skein"}})
	must(t, again, "echo x > new/deep/f && echo x > f")
	if got := again.Planted(); len(got) != 0 {
		t.Errorf("Planted of the next box = %q, want none: it was told", got)
	}
	if out, exit := sh(t, again, "echo x > new/store/hooks/x || echo x > new/deep/er/.git/config || echo x > old/sub/.claude/x"); exit == 0 {
		t.Errorf("what was planted is writable in the next box:\n%s", out)
	}
}

// What was there and was not seen, in a tree that is too large to be looked through, is not
// told of as made.
func TestPlantedInALargeTree(t *testing.T) {
	dir := t.TempDir()
	must(t, outside(t, dir), "mkdir a b && cd a && seq 6000 | xargs touch && cd ../b && git init -q x/old && mkdir -p x/y")
	made := time.Now()
	eventually(t, 5*time.Second, "the tree is old", func() bool { return time.Since(made) > 200*time.Millisecond })
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	must(t, box, "echo x > b/f")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
	must(t, box, "git init -q b/new && git init -q top")
	if got, want := box.Planted(), []string{"b/new/.git", "top/.git"}; !slices.Equal(got, want) {
		t.Errorf("Planted = %q, want %q", got, want)
	}
}
