package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"skein/delegate"
	"skein/orchestrator"
	"skein/tools"
	"skein/tools/edit"
	"skein/tools/files"
	"skein/tools/search"
	"skein/tools/shell"
)

// TestToolsOfScripts: the help names every tool, and no argument that its tool has not.
func TestToolsOfScripts(t *testing.T) {
	schemas := map[string]json.RawMessage{delegate.Name: delegate.Offer{Roles: []delegate.Role{{Name: "r"}}, Models: []string{"m"}}.Schema()}
	for _, tool := range []tools.Tool{
		files.Read(nil), files.Write(nil), edit.SearchReplace(nil), search.List(), search.Glob(), search.Grep(), shell.Bash(),
	} {
		schemas[tool.Spec().Name] = tool.Spec().Schema
	}
	var named []string
	for _, m := range regexp.MustCompile(`(\w+) \{(.*?)\}`).FindAllStringSubmatch(scriptTools, -1) {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(schemas[m[1]], &schema); err != nil {
			t.Errorf("schema of %s: %v", m[1], err)
		}
		for _, argument := range strings.Split(m[2], ", ") {
			if _, ok := schema.Properties[argument]; !ok {
				t.Errorf("%s has no argument %s", m[1], argument)
			}
		}
		named = append(named, m[1])
	}
	all := orchestrator.ToolNames()
	slices.Sort(all)
	slices.Sort(named)
	if !slices.Equal(named, all) {
		t.Errorf("the help names the tools %q, want %q", named, all)
	}
}
