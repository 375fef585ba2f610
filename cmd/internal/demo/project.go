package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed project.txtar
var archive []byte

// A project is the demo's repository on disk.
type project struct {
	dir string
	git bool // it is under git
}

// unpack makes the project in dir as its owner left it: a commit, and on top of it an edit that
// is staged, one that is not, and a file that git does not know. Where git cannot be had the
// files are the same.
func unpack(ctx context.Context, dir string) (project, error) {
	p := project{dir: dir}
	if err := p.layer("committed"); err != nil {
		return p, err
	}
	if _, err := exec.LookPath("git"); err == nil {
		if err := p.run(ctx, "init", "-q", "."); err != nil {
			return p, err
		}
		// A git that is none, or too old to make a repository, leaves plain files.
		_, err := os.Stat(filepath.Join(dir, ".git", "HEAD"))
		p.git = err == nil
	}
	for _, step := range []struct {
		layer string
		git   []string
	}{
		{git: []string{"symbolic-ref", "HEAD", "refs/heads/main"}},
		{git: []string{"add", "-A"}},
		{git: []string{"commit", "-q", "-m", "Count what is on the shelf"}},
		{layer: "staged", git: []string{"add", "-A"}},
		{layer: "unstaged"},
		{layer: "untracked"},
	} {
		if step.layer != "" {
			if err := p.layer(step.layer); err != nil {
				return p, err
			}
		}
		if p.git && step.git != nil {
			if err := p.run(ctx, step.git...); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// layer writes the files of one part of the archive over what is there.
func (p project) layer(name string) error {
	for _, f := range txtar.Parse(archive).Files {
		path, ok := strings.CutPrefix(f.Name, name+"/")
		if !ok {
			continue
		}
		path = filepath.Join(p.dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make demo project: %w", err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return fmt.Errorf("make demo project: %w", err)
		}
	}
	return nil
}

// run runs git in the project, deaf to the user's configuration and always with one identity
// and date: the same commit everywhere.
func (p project) run(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = p.dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-05T09:00:00Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-05T09:00:00Z",
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("make demo project: git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// index returns the bytes of git's index, nil without one.
func (p project) index() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(p.dir, ".git", "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// files returns every file of the project by its name, save what git and skein keep there.
func (p project) files() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".skein"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(p.dir, path)
		files[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read demo project: %w", err)
	}
	return files, nil
}

// test runs the project's own tests and returns what they printed.
func (p project) test(ctx context.Context) (string, error) {
	c := exec.CommandContext(ctx, "go", "test", "./...")
	c.Dir = p.dir
	c.Env = environ()
	out, err := c.CombinedOutput()
	return string(out), err
}

// environ is the user's environment without settings that mean other projects. With -trimpath,
// as in make build, Go finds the standard library compiled: after a fresh clone that saves the
// demo most of its time.
func environ() []string { return append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off") }
