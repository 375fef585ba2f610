package delegate

import (
	"slices"
	"testing"
)

func TestOutside(t *testing.T) {
	files := []string{"a.txt", "docs/a.md", "docs/sub/b.md", "storage/disk.go", "storage/new/x.go", "storage2/x.go"}
	for _, tt := range []struct {
		paths []string
		want  []string // outside of them
	}{
		{nil, nil},
		{[]string{"**"}, nil},
		{[]string{"."}, nil},
		{[]string{"./"}, nil},
		{[]string{"*"}, files[1:]},
		{[]string{"*.md"}, files}, // of the workspace's own folder
		{[]string{"**/*.md", "a.txt"}, []string{"storage/disk.go", "storage/new/x.go", "storage2/x.go"}},
		{[]string{"storage"}, []string{"a.txt", "docs/a.md", "docs/sub/b.md", "storage2/x.go"}},
		{[]string{"storage/"}, []string{"a.txt", "docs/a.md", "docs/sub/b.md", "storage2/x.go"}},
		{[]string{"storage/*"}, []string{"a.txt", "docs/a.md", "docs/sub/b.md", "storage/new/x.go", "storage2/x.go"}},
		{[]string{"{docs,storage}/**", "a.txt"}, []string{"storage2/x.go"}},
		{[]string{"A.txt", "Docs/**", "**/*.go"}, []string{"a.txt", "docs/a.md", "docs/sub/b.md"}},
	} {
		paths, err := cleanGlobs(tt.paths)
		if err != nil {
			t.Errorf("cleanGlobs(%q) = %v", tt.paths, err)
			continue
		}
		if got := (Task{Paths: paths}).Outside(append(files, files...)); !slices.Equal(got, tt.want) {
			t.Errorf("Outside with paths %q = %q, want %q", tt.paths, got, tt.want)
		}
	}
}
