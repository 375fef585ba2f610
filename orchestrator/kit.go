package orchestrator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"skein/delegate"
	"skein/tools"
	"skein/tools/edit"
	"skein/tools/files"
	"skein/tools/search"
	"skein/tools/shell"
)

// ToolNames lists every tool there is, in the order in which a model is shown them.
func ToolNames() []string {
	return []string{"read_file", "list_files", "glob", "grep", "search_replace", "write_file", "bash", delegate.Name}
}

// kit makes one agent's tools, delegate_task aside. What an agent has read is its own, so
// tools that ask for it are, too; all others are shared.
func (r *run) kit(reads *files.Record) map[string]tools.Tool {
	kit := maps.Clone(r.shared)
	r.put(kit, files.Read(reads), edit.SearchReplace(reads), files.Write(reads))
	return kit
}

// share makes the tools that all agents share.
func (r *run) share() {
	r.shared = map[string]tools.Tool{}
	r.put(r.shared, search.List(), search.Glob(), search.Grep(), shell.Bash())
	for _, t := range r.o.Own {
		r.shared[t.Spec().Name] = t
	}
}

// put puts those of the tools that are offered into a kit.
func (r *run) put(kit map[string]tools.Tool, list ...tools.Tool) {
	for _, t := range list {
		if name := t.Spec().Name; r.offers(name) {
			kit[name] = t
		}
	}
}

// isOwn reports whether a tool is one of the caller's own.
func (r *run) isOwn(name string) bool {
	return slices.ContainsFunc(r.o.Own, func(t tools.Tool) bool { return t.Spec().Name == name })
}

// checkOwn says what is wrong with the names of the caller's own tools. Providers take no
// others than these.
func checkOwn(own []tools.Tool) error {
	taken := ToolNames()
	for _, t := range own {
		switch name := t.Spec().Name; {
		case !toolName.MatchString(name):
			return fmt.Errorf("offer tool %q: a name has 1 to 64 letters, digits, underscores or dashes", name)
		case slices.Contains(taken, name):
			return fmt.Errorf("offer tool %s: there is one of that name", name)
		default:
			taken = append(taken, name)
		}
	}
	return nil
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
