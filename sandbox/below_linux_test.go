package sandbox_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"skein/sandbox"
)

// The files of a folder are named from there, under the policy of the whole.
func TestFilesBelow(t *testing.T) {
	base, l := stack(t)
	write(t, filepath.Join(base, "sub/deep/f"), "deep")
	write(t, filepath.Join(base, "sub/hidden/f"), "hidden")
	box := open(t, sandbox.Policy{Workspace: base, Layers: l, Writable: true, Scopes: []string{"sub/deep"}, Hidden: []string{"sub/hidden"}})
	for _, writable := range []bool{true, false} {
		below, err := box.FilesBelow("sub", writable)
		if err != nil {
			t.Fatal(err)
		}
		f := closing(t, below)
		if text, err := fs.ReadFile(f, "deep/f"); err != nil || string(text) != "deep" {
			t.Errorf("ReadFile(deep/f) = %q, %v, want it", text, err)
		}
		for _, name := range []string{"hidden/f", "sub/deep/f"} {
			if _, err := fs.ReadFile(f, name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("ReadFile(%s) = %v, want fs.ErrNotExist", name, err)
			}
		}
		if _, err := fs.ReadFile(f, "../both"); err == nil {
			t.Error("ReadFile(../both) works, want what is above out of reach")
		}
		if err := f.WriteFile("deep/new", nil, 0o644); (err == nil) != writable {
			t.Errorf("writable %v: WriteFile(deep/new) = %v", writable, err)
		}
		if err := f.WriteFile("new", nil, 0o644); err == nil {
			t.Error("WriteFile(new) works, want it out of the policy's scope")
		}
	}
	whole, err := box.FilesBelow("sub/deep", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := closing(t, whole).WriteFile("x/y", nil, 0o644); err != nil {
		t.Errorf("WriteFile(x/y) in a scope = %v, want no error", err)
	}
	if _, err := box.FilesBelow("gone", true); err == nil {
		t.Error("FilesBelow(gone) works, want an error")
	}
}
