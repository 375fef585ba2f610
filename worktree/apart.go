package worktree

import (
	"context"
	"slices"
	"strings"
)

// apart reports whether a merge of two changes of one base takes every file as one of them
// left it, whatever git finds renamed. So it is if they touch different paths, none of them
// above another, and neither can have moved a folder that the other added a file to: a
// renamed file matters to the other side only where that touched it.
func apart(a, b []change) bool {
	paths := make(map[string]bool, len(a)+len(b))
	for i, c := range slices.Concat(a, b) {
		if i >= len(a) && paths[c.path] || c.old == submoduleMode || c.new == submoduleMode {
			return false
		}
		paths[c.path] = true
	}
	for name := range paths {
		for i, r := range name {
			if r == '/' && paths[name[:i]] {
				return false
			}
		}
	}
	return (!moves(a) || !adds(b)) && (!moves(b) || !adds(a))
}

const submoduleMode = "160000"

func adds(list []change) bool {
	return slices.ContainsFunc(list, func(c change) bool { return c.old == absent })
}

// moves reports whether git may take a file of the change for renamed.
func moves(list []change) bool {
	return adds(list) && slices.ContainsFunc(list, func(c change) bool { return c.new == absent })
}

// A step is one merge of a run: the commit that it was made onto, and what it changed there. Of
// one that git made that is found out when it is asked for.
type step struct {
	onto    string
	changes []change // nil: not asked for yet
}

// since lists what the merges of this run changed between a base and what they made of it, a
// file perhaps more than once. It reports false if they did not begin with that base: one who
// solves a conflict begins with what is to come of them.
func (r *Repo) since(ctx context.Context, base, onto string) (all []change, ok bool, err error) {
	for onto != base {
		known, ok := r.steps.Load(onto)
		if !ok {
			return nil, false, nil
		}
		s := known.(step)
		if s.changes == nil {
			if s.changes, err = r.changes(ctx, s.onto, onto); err != nil {
				return nil, false, err
			}
			r.steps.Store(onto, s)
		}
		all, onto = append(all, s.changes...), s.onto
	}
	return all, true, nil
}

// foldersOf lists the folders above the files of a change, outer ones first; "" is the root.
func foldersOf(list []change) []string {
	seen := map[string]bool{"": true}
	for _, c := range list {
		for dir := c.path; dir != ""; {
			dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
			if seen[dir] {
				break
			}
			seen[dir] = true
		}
	}
	folders := make([]string, 0, len(seen))
	for dir := range seen {
		folders = append(folders, dir)
	}
	slices.Sort(folders)
	return folders
}
