package orchestrator

import (
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
// each has a record.
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
	return kit
}
