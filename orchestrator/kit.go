package orchestrator

import (
	"fmt"
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
// each has a record; the caller's own tools are shared by all.
func (r *run) kit(reads *files.Record) map[string]tools.Tool {
	kit := map[string]tools.Tool{}
	for _, t := range []tools.Tool{
		files.Read(reads), search.List(), search.Glob(), search.Grep(), edit.SearchReplace(reads), files.Write(reads), shell.Bash(),
	} {
		kit[t.Spec().Name] = t
	}
	for name := range kit {
		if !r.offers(name) {
			delete(kit, name)
		}
	}
	for _, t := range r.o.Own {
		kit[t.Spec().Name] = t
	}
	return kit
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
