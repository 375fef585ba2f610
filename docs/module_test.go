package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "skein"

// A pkg is one folder of the module with Go files in it.
type pkg struct {
	folder string // slash-separated, relative to the module
	files  []file
}

// A file is one Go file, of whatever system and build tag.
type file struct {
	name   string // slash-separated, relative to the module
	test   bool   // a test, or of a package that exists for tests
	syntax *ast.File
}

// root is the folder of the module: tests run in the folder of their package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// load asks go list for the packages of the module. Planted maps names of files to their
// content, seen in place of what is on disk.
func load(t *testing.T, planted map[string]string) []pkg {
	t.Helper()
	top := root(t)
	args := []string{"list", "-e", "-json=Dir,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles"}
	replaced := map[string]string{}
	if planted != nil {
		args = append(args, "-overlay", overlay(t, top, planted, replaced))
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./...")...)
	cmd.Dir = top
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}

	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			Dir                                                          string
			GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&listed); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		rel, err := filepath.Rel(top, listed.Dir)
		if err != nil {
			t.Fatal(err)
		}
		p := pkg{folder: filepath.ToSlash(rel)}
		for _, name := range slices.Concat(listed.GoFiles, listed.CgoFiles, listed.IgnoredGoFiles, listed.TestGoFiles, listed.XTestGoFiles) {
			p.files = append(p.files, parse(t, p.folder, filepath.Join(listed.Dir, name), replaced))
		}
		pkgs = append(pkgs, p)
	}
}

// overlay writes the planted files and the list of them that go list reads.
func overlay(t *testing.T, top string, planted, replaced map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, source := range planted {
		to := filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		if err := os.WriteFile(to, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(top, filepath.FromSlash(name))] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(to, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

func parse(t *testing.T, folder, name string, replaced map[string]string) file {
	t.Helper()
	read := name
	if to, ok := replaced[name]; ok {
		read = to
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), read, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse %s: %v", name, err)
	}
	return file{
		name:   path.Join(folder, filepath.Base(name)),
		test:   strings.HasSuffix(name, "_test.go") || testSupport(folder),
		syntax: syntax,
	}
}

// imports lists the paths that f imports.
func (f file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// uses lists the names of an imported package that f mentions, whatever f calls the
// package; "*" stands for all of them.
func (f file) uses(imported string) []string {
	local := ""
	for _, spec := range f.syntax.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		local = path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
	}
	switch local {
	case "", "_":
		return nil
	case ".":
		return []string{"*"}
	}
	var names []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
				names = append(names, sel.Sel.Name)
			}
		}
		return true
	})
	return names
}
