package worktree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kinds of a [Conflict]. Git's own further kinds, such as rename/delete, are given by
// its names.
const (
	KindContent      = "content"
	KindAddAdd       = "add/add"
	KindModifyDelete = "modify/delete"
	KindBinary       = "binary"
	KindMode         = "mode"
	KindSymlink      = "symlink"
	KindSubmodule    = "submodule"
	KindInTheWay     = "in the way" // something untracked or ignored stands there
	KindMeanwhile    = "edited meanwhile"
	KindSparse       = "not checked out"
)

// A Conflict is one file that does not merge.
type Conflict struct{ Path, Kind string }

// A ConflictError reports a change that does not merge or cannot be applied. Nothing
// of it was.
type ConflictError struct {
	Conflicts []Conflict // never empty, sorted by path
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	return fmt.Sprintf("%d conflicting paths, first %s (%s)", len(e.Conflicts), first.Path, first.Kind)
}

// Hint says what to do next.
func (e *ConflictError) Hint() string {
	return "nothing of this change was taken; make the change again on top of the present files, or merge the kept change by hand"
}

// conflict makes the error of a list, nil for an empty one.
func conflict(list []Conflict) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	return &ConflictError{Conflicts: slices.Compact(list)}
}

// Merge merges a change three-way onto a commit, in memory. Onto is the change's base,
// or what an earlier Merge made of it; both are of this run. The same input gives the same commit.
func (r *Repo) Merge(ctx context.Context, onto string, ch Change) (string, error) {
	if ch.Empty {
		return onto, nil
	}
	tree, err := r.mergeTree(ctx, onto, ch.Commit)
	if err != nil {
		return "", fmt.Errorf("merge: %w", err)
	}
	id, err := r.commit(ctx, tree, "merge\n", onto, ch.Commit)
	if err != nil {
		return "", fmt.Errorf("merge: %w", err)
	}
	if err := r.pack(ctx, id, onto, ch.Commit); err != nil {
		return "", fmt.Errorf("merge: %w", err)
	}
	return id, nil
}

// mergeTree is the tree of two merged commits, or a [ConflictError].
func (r *Repo) mergeTree(ctx context.Context, a, b string) (string, error) {
	out, err := r.git.run(ctx, r.ours(), nil, "merge-tree", "--write-tree", "-z", "--messages", a, b)
	if err == nil {
		tree, _, _ := strings.Cut(string(out), "\x00")
		return tree, nil
	}
	if exitOf(err) != 1 {
		return "", err
	}
	list, err := parseConflicts(string(out))
	if err != nil {
		return "", fmt.Errorf("git merge-tree: %w", err)
	}
	return "", conflict(list)
}

// sides are the entries of one path: of the base, of ours, of theirs.
type sides [4]struct{ mode, id string }

// parseConflicts reads the answer of merge-tree -z: a tree, then "mode id stage\tpath"
// for each side of each conflicting path, an empty field, then messages made of a
// count, that many paths, a type and a text.
func parseConflicts(out string) ([]Conflict, error) {
	in := strings.Split(out, "\x00")[1:]
	found := map[string]*sides{}
	for len(in) > 0 && in[0] != "" {
		info, path, ok := strings.Cut(in[0], "\t")
		parts := strings.Fields(info)
		if !ok || len(parts) != 3 || len(parts[2]) != 1 || parts[2] < "1" || parts[2] > "3" {
			return nil, fmt.Errorf("entry %q", in[0])
		}
		if found[path] == nil {
			found[path] = &sides{}
		}
		side := &found[path][parts[2][0]-'0']
		side.mode, side.id = parts[0], parts[1]
		in = in[1:]
	}
	types := map[string]string{}
	for in = in[min(1, len(in)):]; len(in) > 3; {
		n, err := strconv.Atoi(in[0])
		if err != nil || n < 0 || len(in) < n+3 {
			return nil, fmt.Errorf("message %q", in[0])
		}
		if kind, ok := strings.CutPrefix(in[n+1], "CONFLICT ("); ok {
			kind = strings.TrimSuffix(kind, ")")
			for _, path := range in[1 : n+1] {
				if old := types[path]; old == "" || old == "contents" { // the special one counts
					types[path] = kind
				}
			}
		}
		in = in[n+3:]
	}
	var list []Conflict
	for path, s := range found {
		list = append(list, Conflict{path, s.kind(types[path])})
		delete(types, path)
	}
	if len(list) == 0 { // a conflict about no file, such as a split of a renamed folder
		for path, kind := range types {
			list = append(list, Conflict{path, kind})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("conflict without a path: %q", out)
	}
	return list, nil
}

// kind names a conflict by the sides there are; git's word decides where they do not.
func (s *sides) kind(word string) string {
	base, a, b := s[1], s[2], s[3]
	is := func(mode string) bool { return a.mode == mode || b.mode == mode }
	switch {
	case word == "binary":
		return KindBinary
	case is("160000"):
		return KindSubmodule
	case word != "" && word != "contents" && word != "add/add" && word != "modify/delete" && word != "distinct modes":
		return word
	case is("120000"):
		return KindSymlink
	case a.mode == "" || b.mode == "":
		return KindModifyDelete
	case a.id == b.id && a.mode != b.mode:
		return KindMode
	case base.mode == "":
		return KindAddAdd
	default:
		return KindContent
	}
}
