package demo

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"skein/cmd/internal/face"
)

// changed returns the names of the files that differ, sorted.
func changed(before, after map[string]string) []string {
	var names []string
	for name, text := range before {
		if now, ok := after[name]; !ok || now != text {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// diff shows what the run changed, and nothing of what was changed before it.
func diff(out io.Writer, before, after map[string]string, colour bool) error {
	var b strings.Builder
	for _, name := range changed(before, after) {
		b.WriteString(face.Diff(udiff.Unified("a/"+name, "b/"+name, before[name], after[name]), colour))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// names returns the sorted union of lists of names.
func names(lists ...[]string) []string {
	set := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
