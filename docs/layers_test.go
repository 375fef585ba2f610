package docs_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A layer says what the packages of a folder may import of this module. "x/..." stands
// for all folders below x, not for x itself; the longest line that fits a package counts.
type layer struct {
	folder string
	may    []string
	why    string
}

var layers = []layer{
	{"scheduler", nil, "it runs jobs in order and never learns what an agent is"},
	{"sandbox", []string{"sandbox/..."}, "it knows the operating system only"},
	{"sandbox/...", []string{"sandbox", "sandbox/..."}, "the parts of the box serve the box only"},
	{"worktree", []string{"worktree/..."}, "it knows git and never learns what a model is"},
	{"tools", []string{"sandbox", "scheduler"}, "a tool knows its effect and its workspace, not who calls it"},
	{"tools/...", []string{"tools", "tools/...", "sandbox", "scheduler"}, "a tool knows its effect and its workspace, not who calls it"},
	{"agent/model", nil, "what a conversation is depends on nobody who holds one"},
	{"agent/model/...", []string{"agent/model", "agent/model/..."}, "an adapter speaks to a provider and to nothing else"},
	{"agent/window", []string{"agent/model"}, "what a model is shown follows from messages alone"},
	{"agent/journal", []string{"agent/model"}, "events are written down without knowing what they cause"},
	{"agent", []string{"agent/model", "agent/window", "agent/journal", "tools"}, "concurrency, permission and children are layers behind the batch, which the loop does not see"},
	{"delegate", []string{"agent/model", "agent/window", "scheduler", "tools"}, "it asks for a Runner and never knows who it is"},
	{"orchestrator", []string{"agent", "agent/model", "agent/window", "agent/journal", "delegate", "tools", "tools/...", "worktree", "scheduler", "sandbox"}, "it puts the parts together, but is given its model: adapters are picked by cmd"},
	{"cmd/skein-init", []string{"sandbox/..."}, "it starts in every box and must stay small"},
	{"cmd/...", []string{"..."}, "the wiring, and the only place that picks adapters"},
	{"docs", nil, "it reads the module from outside"},
}

// A ban forbids something to the code of some folders. Tests and the packages that exist
// for tests (modeltest, toolstest) are free of it.
type ban struct {
	folders []string
	imports []string       // import paths; "x/..." stands for x and all below it
	name    string         // a package of which only some names may be used:
	allowed *regexp.Regexp // these, if set,
	denied  *regexp.Regexp // or all but these
	why     string
}

const (
	throughWorkspace = "files and processes are reached through the workspace, which a box limits"
	returnsValues    = "tools return values: they neither log nor print nor emit events"
)

var bans = []ban{
	{folders: []string{"tools", "tools/..."}, imports: []string{"os/exec", "golang.org/x/sys/...", "io/ioutil"}, why: throughWorkspace},
	{folders: []string{"tools", "tools/..."}, name: "syscall", allowed: regexp.MustCompile(`^(E[A-Z0-9]+|Errno)$`), why: throughWorkspace},
	{folders: []string{"tools", "tools/..."}, name: "os", allowed: regexp.MustCompile(`^(Err\w+|Mode\w+|File(Info|Mode)|PathError|Is(Not)?Exist|IsPermission)$`), why: throughWorkspace},
	{folders: []string{"tools", "tools/..."}, name: "path/filepath", denied: regexp.MustCompile(`^(Abs|EvalSymlinks|Glob|Walk|WalkDir)$`), why: throughWorkspace},
	{folders: []string{"tools", "tools/..."}, imports: []string{"log/..."}, why: returnsValues},
	{folders: []string{"tools", "tools/..."}, name: "fmt", denied: regexp.MustCompile(`^Print`), why: returnsValues},
	{folders: []string{"agent", "agent/...", "delegate", "orchestrator", "scheduler"}, imports: []string{"os/exec"}, why: "processes are started by a box, or by worktree, which runs git"},
}

// check returns what is wrong with the packages, one line each with its reason.
func check(pkgs []pkg) []string {
	var wrong []string
	for _, p := range pkgs {
		wrong = append(wrong, checkName(p)...)
		l, ok := layerOf(p.folder)
		if !ok {
			wrong = append(wrong, p.folder+" has no line in the table of layers: say what it may import, and why")
			continue
		}
		for _, f := range p.files {
			for _, imported := range f.imports() {
				folder, ours := strings.CutPrefix(imported, module+"/")
				if ours && folder != p.folder && !l.allows(folder, f.test) {
					wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", f.name, imported, l.why))
				}
			}
			if f.test {
				continue
			}
			wrong = append(wrong, checkBans(p, f)...)
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					wrong = append(wrong, f.name+" has a func init: importing a package must do nothing")
				}
			}
		}
	}
	return wrong
}

func checkBans(p pkg, f file) []string {
	var wrong []string
	for _, b := range bans {
		if !slices.ContainsFunc(b.folders, func(pattern string) bool { return matches(pattern, p.folder) }) {
			continue
		}
		for _, imported := range f.imports() {
			for _, pattern := range b.imports {
				if imported == strings.TrimSuffix(pattern, "/...") || matches(pattern, imported) {
					wrong = append(wrong, fmt.Sprintf("%s imports %s: %s", f.name, imported, b.why))
				}
			}
		}
		for _, name := range f.uses(b.name) {
			if b.allowed != nil && !b.allowed.MatchString(name) || b.denied != nil && b.denied.MatchString(name) {
				wrong = append(wrong, fmt.Sprintf("%s uses %s.%s: %s", f.name, path.Base(b.name), name, b.why))
			}
		}
	}
	return wrong
}

func checkName(p pkg) []string {
	for _, name := range strings.Split(p.folder, "/") {
		switch name {
		case "util", "common", "helpers", "types", "pkg", "base", "shared", "manager":
			return []string{p.folder + ": " + name + " says nothing: a package is a noun for what it gives"}
		}
	}
	switch top, _, _ := strings.Cut(p.folder, "/"); top {
	case "cmd", "orchestrator", "agent", "delegate", "worktree", "scheduler", "tools", "sandbox", "evals", "docs":
		return nil
	}
	return []string{p.folder + ": the top-level folders are fixed, packages live inside the room they belong to"}
}

// testSupport reports whether a package exists for tests, as modeltest does.
func testSupport(folder string) bool { return strings.HasSuffix(folder, "test") }

func layerOf(folder string) (layer, bool) {
	best, found := layer{}, false
	for _, l := range layers {
		if l.folder == folder {
			return l, true
		}
		if matches(l.folder, folder) && len(l.folder) > len(best.folder) {
			best, found = l, true
		}
	}
	return best, found
}

// allows reports whether code of the layer may import folder. Tests may import adapters
// too, to talk to a real server, and what exists for the tests of folders they may import.
func (l layer) allows(folder string, test bool) bool {
	if adapter := matches("agent/model/...", folder); test && (adapter || testSupport(folder)) {
		above := path.Dir(folder)
		return l.folder == above || l.lists(above) || l.lists(folder)
	}
	return l.lists(folder) && !testSupport(folder)
}

func (l layer) lists(folder string) bool {
	return slices.ContainsFunc(l.may, func(pattern string) bool { return matches(pattern, folder) })
}

// matches reports whether folder is pattern, or below it where it ends in "/...".
func matches(pattern, folder string) bool {
	if below, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(folder, below)
	}
	return folder == pattern
}

// The table that people read is this one.
func TestLayersInAgentsFile(t *testing.T) {
	var table strings.Builder
	table.WriteString("| folder | may import | because |\n|---|---|---|\n")
	for _, l := range layers {
		may := "nothing"
		if len(l.may) > 0 {
			may = strings.Join(l.may, ", ")
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", l.folder, may, l.why)
	}
	golden(t, "AGENTS.md", "<!-- layers: from docs/layers_test.go by make docs -->\n\n", table.String(), "\n<!-- end of layers -->")
}

func TestLayers(t *testing.T) {
	pkgs := load(t, nil)
	for _, wrong := range check(pkgs) {
		t.Error(wrong)
	}
	for _, l := range layers {
		if !slices.ContainsFunc(pkgs, func(p pkg) bool { got, _ := layerOf(p.folder); return got.folder == l.folder }) {
			t.Errorf("the line of %s in the table of layers fits no package: remove it", l.folder)
		}
	}
}

// What is planted must be found, and the reason named.
func TestLayersFindsWhatIsForbidden(t *testing.T) {
	for _, tt := range []struct{ file, source, want string }{
		{"scheduler/planted.go", `package scheduler; import _ "skein/worktree"`, "scheduler/planted.go imports skein/worktree: it runs jobs in order and never learns what an agent is"},
		{"scheduler/planted_test.go", `package scheduler_test; import _ "skein/agent"`, "scheduler/planted_test.go imports skein/agent: it runs jobs"},
		{"scheduler/planted_plan9.go", `package scheduler; import _ "skein/agent"`, "scheduler/planted_plan9.go imports skein/agent: it runs jobs"},
		{"worktree/planted_test.go", `package worktree; import _ "skein/tools/toolstest"`, "worktree/planted_test.go imports skein/tools/toolstest: it knows git"},
		{"orchestrator/planted.go", `package orchestrator; import _ "skein/agent/model/openai"`, "adapters are picked by cmd"},
		{"agent/planted.go", `package agent; import _ "skein/agent/model/modeltest"`, "agent/planted.go imports skein/agent/model/modeltest: concurrency"},
		{"delegate/planted.go", `package delegate; import _ "skein/orchestrator"`, "it asks for a Runner and never knows who it is"},
		{"tools/files/planted.go", `package files; import "os"; var _, _ = os.ReadFile("x")`, "tools/files/planted.go uses os.ReadFile: files and processes are reached through the workspace"},
		{"tools/files/planted.go", `package files; import sys "os"; var _ = sys.DirFS("/")`, "tools/files/planted.go uses os.DirFS: files and processes"},
		{"tools/files/planted.go", `package files; import . "os"; var _ = DirFS("/")`, "tools/files/planted.go uses os.*: files and processes"},
		{"tools/shell/planted.go", `package shell; import _ "os/exec"`, "tools/shell/planted.go imports os/exec: files and processes"},
		{"tools/edit/planted.go", `package edit; import _ "log/slog"`, "tools/edit/planted.go imports log/slog: tools return values"},
		{"tools/planted.go", `package tools; import "fmt"; var _, _ = fmt.Println("x")`, "tools/planted.go uses fmt.Println: tools return values"},
		{"agent/planted.go", `package agent; import _ "os/exec"`, "agent/planted.go imports os/exec: processes are started by a box"},
		{"scheduler/planted.go", `package scheduler; func init() {}`, "scheduler/planted.go has a func init"},
		{"internal/planted.go", `package internal`, "internal: the top-level folders are fixed"},
		{"agent/util/planted.go", `package util`, "agent/util: util says nothing"},
		{"evals/planted.go", `package evals`, "evals has no line in the table of layers"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			wrong := check(load(t, map[string]string{tt.file: tt.source}))
			if !slices.ContainsFunc(wrong, func(line string) bool { return strings.Contains(line, tt.want) }) {
				t.Errorf("check with %s planted = %q, want a line with %q", tt.file, wrong, tt.want)
			}
		})
	}
}
