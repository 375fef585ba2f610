package files_test

import (
	"strings"
	"testing"

	"skein/tools/files"
	"skein/tools/mask"
	"skein/tools/toolstest"
)

// A file whose secret was masked when it was read is not written back with the mark in it.
func TestWriteRefusesTheMaskMark(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{".env": "KEY=of-ours-and-secret\n"})
	rec := &files.Record{}
	in := args{"path": ".env", "content": "A=1\nKEY=" + mask.Marker + "\n"}
	toolstest.Call(t, files.Read(rec), ws, args{"path": ".env"})
	got := toolstest.Call(t, files.Write(rec), ws, in)
	if !got.IsError || !strings.Contains(got.Text, "content holds the mark [secret masked]") || !strings.Contains(got.Text, "hint: leave the secret as it is") {
		t.Errorf("write_file = %+v, want it refused", got)
	}
	if got := toolstest.Contents(ws, ".env"); got != "KEY=of-ours-and-secret\n" {
		t.Errorf("the file is %q", got)
	}
}
