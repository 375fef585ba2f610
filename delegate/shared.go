package delegate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Shared file was changed by several writers of a batch.
type Shared struct {
	File string
	With []int // the others, by the index of their delegations
}

func (s Shared) who() string {
	if len(s.With) == 1 {
		return fmt.Sprintf("child %d", s.With[0])
	}
	var names []string
	for _, n := range s.With {
		names = append(names, fmt.Sprint(n))
	}
	last := len(names) - 1
	return "children " + strings.Join(names[:last], ", ") + " and " + names[last]
}

// Overlaps lists the files of a change that others have in theirs, in the order of files; others
// holds their files by the index of their delegations. Files may stand there twice.
func Overlaps(files []string, others map[int][]string) []Shared {
	with := map[string][]int{}
	for _, n := range slices.Sorted(maps.Keys(others)) {
		for _, f := range others[n] {
			if !slices.Contains(with[f], n) {
				with[f] = append(with[f], n)
			}
		}
	}
	var found []Shared
	for _, f := range files {
		if len(with[f]) > 0 {
			found = append(found, Shared{f, with[f]})
			delete(with, f)
		}
	}
	return found
}
