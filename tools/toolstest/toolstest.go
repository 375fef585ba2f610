// Package toolstest helps to test tools: a workspace over a folder of the test's own, reached
// as in a run, and the golden form of what models are shown.
package toolstest

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"strings"
	"testing"

	"skein/sandbox"
	"skein/tools"
)

var update = flag.Bool("update", false, "write the golden files of tool specs anew")

// Workspace returns a writable workspace over a new folder that holds these files. It runs no
// commands.
func Workspace(t testing.TB, files map[string]string) tools.Workspace {
	t.Helper()
	dir := t.TempDir()
	ws := tools.Workspace{Path: dir, FS: open(t, sandbox.Policy{Workspace: dir, Writable: true}), NoExec: "this test runs no commands"}
	for name, content := range files {
		if err := ws.FS.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

// ReadOnly returns the same workspace without the right to write.
func ReadOnly(t testing.TB, ws tools.Workspace) tools.Workspace {
	t.Helper()
	ws.FS = open(t, sandbox.Policy{Workspace: ws.Path})
	return ws
}

func open(t testing.TB, p sandbox.Policy) *sandbox.Files {
	t.Helper()
	f, err := sandbox.OpenFiles(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Call runs a tool with arguments given as a Go value.
func Call(t testing.TB, tool tools.Tool, ws tools.Workspace, args any) tools.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), ws, raw)
	if err != nil {
		t.Fatalf("%s(%s) = error %v, want a result", tool.Spec().Name, raw, err)
	}
	return res
}

// Args are arguments of a call.
type Args map[string]any

// Contents returns the content of a file of the workspace, or the error in brackets.
func Contents(ws tools.Workspace, name string) string {
	b, err := fs.ReadFile(ws.FS, name)
	if err != nil {
		return "[" + err.Error() + "]"
	}
	return string(b)
}

// Spec compares what a model is shown of a tool with testdata/NAME.golden of the package
// under test; with -update it writes that file.
func Spec(t *testing.T, tool tools.Tool) {
	t.Helper()
	s := tool.Spec()
	var schema bytes.Buffer
	if err := json.Indent(&schema, s.Schema, "", "  "); err != nil {
		t.Fatalf("schema of %s: %v", s.Name, err)
	}
	if strings.Contains(schema.String(), "$defs") {
		t.Errorf("schema of %s has $defs", s.Name)
	}
	got, name := s.Name+"\n\n"+s.Description+"\n\n"+schema.String()+"\n", "testdata/"+s.Name+".golden"
	here := open(t, sandbox.Policy{Workspace: ".", Writable: *update})
	if *update {
		if err := here.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := fs.ReadFile(here, name)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s = \n%s\nwant (rewrite with -update if meant)\n%s", s.Name, got, want)
	}
}
