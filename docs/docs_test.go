// Package docs_test holds the documents to the code: who imports whom, and whether what
// README and the pages here name exists.
package docs_test

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what is generated in the documents")

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares what stands between two marks of a page with what is wanted there.
func golden(t *testing.T, name, from, want, to string) {
	t.Helper()
	text := page(t, name)
	head, rest, found := strings.Cut(text, from)
	got, tail, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("%s has no part between %q and %q", name, from, to)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not up to date, run make docs:\n got %s\nwant %s", name, got, want)
	}
	if err := os.WriteFile(filepath.Join(root(t), name), []byte(head+from+want+to+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commands lists the lines of a page's shell blocks that begin with word.
func commands(text, word string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, word+" ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestMakeTargetsExist(t *testing.T) {
	makefile := page(t, "Makefile")
	for _, name := range []string{"README.md", "AGENTS.md"} {
		lines := commands(page(t, name), "make")
		if len(lines) == 0 {
			t.Errorf("%s shows no make command", name)
		}
		for _, line := range lines {
			if target := strings.Fields(line)[1]; !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile) {
				t.Errorf("%s says %q, but Makefile has no target %s", name, line, target)
			}
		}
	}
}

// README shows commands and flags that the program has.
func TestReadmeCommandsExist(t *testing.T) {
	lines := commands(page(t, "README.md"), "bin/skein")
	if len(lines) == 0 {
		t.Fatal("README.md shows no skein command")
	}
	bin := filepath.Join(t.TempDir(), "skein")
	if out, err := command(t, "go", "build", "-o", bin, "./cmd/skein"); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, line := range lines {
		path := []string{}
		for _, word := range strings.Fields(line)[1:] {
			if !regexp.MustCompile(`^[a-z]+$`).MatchString(word) {
				break
			}
			path = append(path, word)
		}
		help, err := command(t, bin, append(path, "--help")...)
		if err != nil || !strings.Contains(help, "skein "+strings.Join(path, " ")) {
			t.Errorf("README.md says %q, but skein %s --help = %v\n%s", line, strings.Join(path, " "), err, help)
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(line, -1) {
			if flag != "--help" && !regexp.MustCompile(flag+`\b`).MatchString(help) {
				t.Errorf("README.md says %q, but skein %s has no %s", line, strings.Join(path, " "), flag)
			}
		}
	}
}

func command(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The architecture page has every package, and none that is not there.
func TestArchitectureNamesThePackages(t *testing.T) {
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^- \\*\\*`([^`]+)`\\*\\*").FindAllStringSubmatch(page(t, "docs/architecture.md"), -1) {
		named[m[1]] = true
	}
	for _, p := range load(t, nil) {
		code := slices.ContainsFunc(p.files, func(f file) bool { return !strings.HasSuffix(f.name, "_test.go") })
		if code && !named[p.folder] {
			t.Errorf("docs/architecture.md says nothing about %s", p.folder)
		}
		delete(named, p.folder)
	}
	for folder := range named {
		t.Errorf("docs/architecture.md tells of %s, which is no package", folder)
	}
}

// Links between the pages lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	top := root(t)
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && name != top):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		for _, m := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), string(m[1]))); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
