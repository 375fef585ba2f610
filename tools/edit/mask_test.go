package edit_test

import (
	"strings"
	"testing"

	"skein/tools"
	"skein/tools/edit"
	"skein/tools/mask"
	"skein/tools/toolstest"
)

// The mark of a masked secret is not written into a file; a file that has it may lose it.
func TestSearchReplaceRefusesTheMaskMark(t *testing.T) {
	const before = "KEY=of-ours-and-secret\nOLD=" + mask.Marker + "\n"
	ws := toolstest.Workspace(t, map[string]string{".env": before})
	tool := edit.SearchReplace(nil)
	in := args{"path": ".env", "search": "KEY=of-ours-and-secret", "replace": "KEY=" + mask.Marker}
	got := toolstest.Call(t, tool, ws, in)
	if !got.IsError || !strings.Contains(got.Text, "replace holds the mark [secret masked]") || !strings.Contains(got.Text, "hint: ") {
		t.Errorf("search_replace = %+v, want it refused", got)
	}
	if _, err := tool.(tools.Previewer).Preview(t.Context(), ws, []byte(`{"path":".env","search":"KEY","replace":"[secret masked]"}`)); err == nil {
		t.Error("Preview = no error, want the refusal before anybody is asked")
	}
	if got := toolstest.Contents(ws, ".env"); got != before {
		t.Errorf("the file is %q", got)
	}
	if got := toolstest.Call(t, tool, ws, args{"path": ".env", "search": "OLD=" + mask.Marker, "replace": "OLD="}); got.IsError {
		t.Errorf("search_replace of the mark by something else = %+v", got)
	}
}
