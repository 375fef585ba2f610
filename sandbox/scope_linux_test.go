package sandbox_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"skein/sandbox"
)

// A writer whose parent works in a folder of the repository changes that folder and its own
// git directory, and nothing else of the copy.
func TestScopeAloneIsWritable(t *testing.T) {
	copied, view := repository(t), t.TempDir()
	write(t, filepath.Join(copied, "sub/deep/f"), "deep\n")
	link(t, "../README.md", filepath.Join(copied, "sub/up"))
	box := open(t, sandbox.Policy{
		Workspace: copied, View: view, Writable: true, Scopes: []string{"sub"},
		GitDir: filepath.Join(copied, ".git"), Git: [2]string{"w", "w@example.org"},
	})
	must(t, box, "echo new > sub/new; echo x >> sub/deep/f; rm sub/f; git add -A && git commit -qm second")
	for _, script := range []string{
		"echo x > README.md", "echo x >> sub/up", "echo x > new", "mkdir d", "rm README.md", "mv sub other",
		"mv sub/new new", "ln README.md sub/hard", "chmod 600 README.md", "touch .gitmodules",
	} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0 where only sub is writable, want a failure; output:\n%s", script, out)
		}
	}
	if got := must(t, outside(t, copied), "git log --format=%s; git status --short; ls; ls sub"); got != "second\nfirst\nREADME.md\nsub\ndeep\nnew\nup\n" {
		t.Errorf("the copy afterwards: %q", got)
	}
	// Without a git directory of its own the box keeps the one that is there closed.
	box = open(t, sandbox.Policy{Workspace: copied, View: view, Writable: true, Scopes: []string{"sub/deep"}})
	must(t, box, "echo y > sub/deep/f; git status --short | grep sub/deep/f")
	if out, exit := sh(t, box, "echo x > .git/config || git add -A || echo x > sub/new"); exit == 0 {
		t.Errorf("outside of the scope something was written; output:\n%s", out)
	}
}

func TestSeveralScopes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/f", "b/deep/f", "ab/f", "f"} {
		write(t, filepath.Join(dir, name), "old\n")
	}
	policy := sandbox.Policy{Workspace: dir, Writable: true, Scopes: []string{"b/deep", "a", "b", "./a/"}}
	must(t, open(t, policy), "echo new | tee a/f b/new b/deep/f")
	for _, script := range []string{"echo x > f", "echo x > ab/f", "touch new"} {
		if out, exit := sh(t, open(t, policy), script); exit == 0 {
			t.Errorf("%s: exit 0 where only a and b are writable, want a failure; output:\n%s", script, out)
		}
	}
	f := files(t, policy)
	for name, may := range map[string]bool{"a/g": true, "b/deep/g": true, "ab/g": false, "g": false} {
		if err := f.WriteFile(name, []byte("x"), 0o644); errors.Is(err, fs.ErrPermission) == may {
			t.Errorf("WriteFile(%s) = %v, want it to work: %v", name, err, may)
		}
	}
}

func TestFilesObeyTheScope(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub/f"), "f\n")
	write(t, filepath.Join(dir, "subway/f"), "f\n")
	link(t, "../out", filepath.Join(dir, "sub/link"))
	link(t, "sub", filepath.Join(dir, "into"))
	f := files(t, sandbox.Policy{Workspace: dir, Writable: true, Scopes: []string{"sub/"}})
	for _, name := range []string{"sub/f", "sub/new", "sub/made/new", "into/f", "subway/../sub/g"} {
		if err := f.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Errorf("WriteFile(%s) = %v, want nil", name, err)
		}
	}
	for _, name := range []string{"f", "subway/f", "sub/../f", "sub/link", "made/f"} {
		if err := f.WriteFile(name, []byte("x"), 0o644); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("WriteFile(%s) = %v, want ErrPermission", name, err)
		}
	}
	if got := must(t, outside(t, dir), "ls; cat subway/f"); got != "into\nsub\nsubway\nf\n" {
		t.Errorf("the workspace afterwards: %q", got)
	}
}
