package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skein/sandbox"
)

// Git directories below a writable workspace are closed like its own: folders and files.
func TestNestedGitDirectoriesAreClosed(t *testing.T) {
	dir := repository(t)
	must(t, outside(t, dir), "git init -q libs/inner && git -C libs/inner commit -q --allow-empty -m first && git worktree add -q wt")
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	must(t, box, "echo x > libs/inner/new; git -C libs/inner status --short | grep new; echo x > wt/new; git -C wt status --short | grep new")
	for _, script := range []string{
		"git -C libs/inner config core.fsmonitor /bin/true", "echo exit > libs/inner/.git/hooks/pre-commit", "git -C libs/inner add new",
		"rm -rf libs/inner/.git", "mv libs/inner/.git g", "echo gitdir: /tmp > wt/.git", "rm wt/.git", "mv wt/.git g", "echo x > x && mv x wt/.git",
	} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0, want a failure; output:\n%s", script, out)
		}
	}
	if got := must(t, outside(t, dir), "git -C libs/inner fsck 2>&1; git -C libs/inner status --short; git -C wt status --short"); got != "?? new\n?? new\n" {
		t.Errorf("the inner repositories afterwards: %q", got)
	}
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
}

// A closed file that has another name can be changed by that, which is told.
func TestClosedFileByAnotherName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"samples/env", "samples/other", "samples/kept", "alone/.envrc"} {
		write(t, filepath.Join(dir, name), "old\n")
	}
	must(t, outside(t, dir), "ln samples/env .envrc && ln samples/other mise.toml && ln samples/kept sub.envrc && mkdir sub && ln samples/kept sub/.envrc")
	box := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	for _, script := range []string{"echo x > .envrc", "echo x > sub/.envrc", "echo x > alone/.envrc"} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0, want a failure; output:\n%s", script, out)
		}
	}
	must(t, box, "cat sub/.envrc samples/kept; echo new > alone/other")
	if got := box.Planted(); len(got) != 0 {
		t.Errorf("Planted = %q, want none", got)
	}
	must(t, box, "echo evil > samples/env; touch -r sub/.envrc .time; echo evil > samples/other; touch -r .time samples/other")
	if got, want := box.Planted(), []string{".envrc", "mise.toml"}; !slices.Equal(got, want) {
		t.Errorf("Planted = %q, want %q", got, want)
	}
}

// What a box cannot hold it tells: what git and this program would obey that was not there.
func TestPlanted(t *testing.T) {
	const plant = "git init -q . && git config filter.x.clean evil; mkdir .skein && echo x > .skein/config.yaml;" +
		"git init -q sub/empty; mv sub/inner sub/moved && mkdir sub/inner && cp -r sub/moved/.git sub/inner/.git; git init -q sub/fresh; git init -q scope/a"
	for _, row := range []struct {
		name   string
		change func(*sandbox.Policy)
		want   []string
	}{
		{"whole", func(*sandbox.Policy) {}, []string{".git", ".skein", "scope/a/.git", "sub/empty/.git", "sub/fresh/.git", "sub/inner/.git"}},
		{"scope", func(p *sandbox.Policy) { p.Scopes = []string{"scope"} }, []string{"scope/a/.git"}},
		{"own git directory", func(p *sandbox.Policy) { p.GitDir = filepath.Join(p.Workspace, ".git") }, []string{".skein", "scope/a/.git", "sub/empty/.git", "sub/fresh/.git", "sub/inner/.git"}},
		{"reader", func(p *sandbox.Policy) { p.Writable = false }, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := sandbox.Policy{Workspace: t.TempDir(), Writable: true, Hidden: []string{".skein"}}
			for _, folder := range []string{"sub/empty", "sub/inner/.git", "scope/a"} {
				if err := os.MkdirAll(filepath.Join(p.Workspace, folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			row.change(&p)
			if p.GitDir != "" {
				must(t, outside(t, p.Workspace), "git init -q .")
			}
			box := open(t, p)
			if got := box.Planted(); len(got) != 0 {
				t.Errorf("Planted before any command = %q, want none", got)
			}
			out, _ := sh(t, box, plant)
			if got := box.Planted(); !slices.Equal(got, row.want) {
				t.Errorf("Planted = %q, want %q; output of the command:\n%s", got, row.want, out)
			}
			_ = box.Close()
			if got := box.Planted(); !slices.Equal(got, row.want) {
				t.Errorf("Planted after Close = %q, want %q", got, row.want)
			}
		})
	}
}
