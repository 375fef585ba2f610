package worktree

import (
	"context"
	"os"
	"strings"
)

// A filter that the repository itself configures does not run in our calls, see foreign.go.
// What git stores of a file below such a filter is then not what stands in the tree: it may
// be encrypted, or a mere pointer. So the file goes into a snapshot as it stands in the tree,
// and comes back as such: the stored form never takes the place of the readable one.

// LeftFilter is the reason of [Left] for a file that is in a snapshot as git stores it,
// where a filter makes something else of it in the tree. No change of it is applied.
const LeftFilter = "large, and below a filter that the repository itself configures: as git stores it"

// filteredBytes is how much of such files goes into one snapshot.
const filteredBytes = 64 << 20

// filtered sets aside of the index what git stores of files below filters that do not run.
// It returns the files to take as they stand in the tree.
func (s *staging) filtered(ctx context.Context) ([]string, error) {
	off := s.tree.repo.filtersOff
	if s.tree.copy != nil || len(off) == 0 {
		return nil, nil
	}
	names, err := s.git.run(ctx, s.at, nil, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	out, err := s.git.run(ctx, s.at, names, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	s.stored = map[string]bool{}
	var files []string
	room := int64(filteredBytes)
	for answer := fields(out); len(answer) >= 3; answer = answer[3:] { // path, attribute, value
		name := answer[0]
		info, err := os.Lstat(s.tree.stored(name))
		if !off[answer[2]] || err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch size := info.Size(); {
		case size > tooLarge, size > room:
			s.left = append(s.left, Left{name, LeftFilter})
			s.stored[name] = true
		case !s.takes(name, false, false):
			s.stored[name] = true
		default:
			room -= size
			files = append(files, name)
		}
	}
	// Git takes what it knows for unchanged without reading it.
	return files, s.update(ctx, files, "--force-remove")
}

// filtersOff lists the filters of which the repository's own configuration says something
// else than the user's: by their keys, all that is configured, and what of it is the
// repository's.
func filtersOff(all, own map[string]string) map[string]bool {
	off := map[string]bool{}
	for key, value := range own {
		name, what := filterKey(key)
		if name != "" && what != "required" && value != all[key] {
			off[name] = true
		}
	}
	return off
}

// filterKey splits a key such as filter.lfs.clean.
func filterKey(key string) (name, what string) {
	rest, ok := strings.CutPrefix(key, "filter.")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 {
		return "", ""
	}
	return rest[:dot], rest[dot+1:]
}
