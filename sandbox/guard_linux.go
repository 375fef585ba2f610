package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"skein/sandbox/boxinit"
)

// A guard knows what of a writable workspace somebody obeys outside of the box, see [Closed],
// and git directories by any name. What stands there already is shown read-only. For what does
// not there is no means, without making it on the host: the guard can only tell, afterwards.
type guard struct {
	root    string           // host folder of the workspace
	skip    map[string]bool  // relative; decided on by other parts of the plan
	places  []string         // relative; what counts by its path, there or not
	known   map[fileID]bool  // what stood there
	shared  map[string]stamp // relative; closed files that have another name, by which they can be changed
	folders map[string]stamp // what was looked through
	whole   bool             // all of it was
	opened  time.Time
}

// guardFor looks at the workspace, and adds the mounts that close what it finds.
func guardFor(p Policy, view string, spec *boxinit.Spec) (guard, error) {
	if !p.Writable || p.Layers != nil {
		return guard{}, nil // what is changed in layers goes into a folder in which nobody else uses git
	}
	g := guard{root: p.Workspace, skip: map[string]bool{}, known: map[fileID]bool{}, shared: map[string]stamp{}, opened: time.Now()}
	for _, scope := range p.Scopes {
		if dir := gitDirAround(filepath.Join(g.root, scope)); dir != "" {
			return g, &policyError{
				fmt.Errorf("%s lies in the git directory %s, where nothing is ever writable", filepath.Join(g.root, scope), dir),
				"work in a tree of that repository (git worktree add makes one), or in a box that only reads",
			}
		}
	}
	for _, m := range spec.Mounts {
		rel, err := filepath.Rel(view, m.Target)
		if err != nil || !filepath.IsLocal(rel) || slices.Contains(p.Scopes, rel) {
			continue
		}
		g.skip[rel] = true
		if m.Kind == boxinit.Hide && inScopes(p.Scopes, rel) {
			g.places = append(g.places, rel)
		}
	}
	l := look{root: g.root, skip: g.skip, left: mostEntries, folders: map[string]stamp{}, whole: true}
	l.through(p.Scopes)
	g.folders, g.whole = l.folders, l.whole
	found := l.found
	for _, rel := range p.closedPaths() {
		if !g.skip[rel] && inScopes(p.Scopes, rel) {
			g.places, found = append(g.places, rel), append(found, rel)
		}
	}
	for _, rel := range slices.Concat(found, g.places) {
		if id, _, ok := g.stat(rel); ok {
			g.known[id] = true
		}
	}
	closing, err := g.closing(p, found)
	for _, rel := range closing {
		if info, err := os.Lstat(filepath.Join(g.root, rel)); err == nil && manyNamed(info) {
			g.shared[rel] = stampOf(info)
		}
		spec.Mounts = append(spec.Mounts, boxinit.Mount{
			Kind: boxinit.Bind, Source: filepath.Join(g.root, rel), Target: filepath.Join(view, rel),
		})
	}
	return g, err
}

// closing lists what is to be shown read-only: what was found, and what it leads to. In a copy
// of the user's tree, which has a git directory of its own, nobody obeys settings: what was
// changed of them is seen when the copy is taken over.
func (g guard) closing(p Policy, found []string) (list []string, err error) {
	add := func(rel string) {
		held := func(by string) bool { return within(rel, by) }
		if filepath.IsLocal(rel) && inScopes(p.Scopes, rel) && !slices.ContainsFunc(p.Scopes, func(scope string) bool { return within(scope, rel) }) &&
			!g.skip[rel] && !slices.ContainsFunc(list, held) {
			list = append(list, rel)
		}
	}
	leads := func(path string) {
		if rel, err := filepath.Rel(g.root, path); err == nil && path != "" {
			add(rel)
		}
	}
	for _, rel := range found {
		path := filepath.Join(g.root, rel)
		info, err := os.Lstat(path)
		ofGit := filepath.Base(rel) == ".git"
		switch {
		case err != nil: // gone meanwhile, or a place where nothing is
		case ofGit:
			if _, err := fixed(path); err != nil {
				return nil, err
			}
			add(rel)
			if dir := gitDirAt(filepath.Dir(path), gitFile(path)); dir != "" {
				leads(dir)
				leads(gitDirAt(dir, commonDir(dir)))
			}
		case p.GitDir != "" && Obeyed(filepath.ToSlash(rel)):
		case info.Mode()&fs.ModeSymlink != 0: // a command can put something else there, which is told
			leads(rooted(g.root, rel))
		default:
			add(rel)
		}
	}
	return list, nil
}

// gitFile is the folder that a .git file names, "" if it is none.
func gitFile(path string) string {
	dir, _ := readLine(path, "gitdir:")
	return dir
}

// commonDir is the folder that a git directory of a linked worktree names, "" if it is none.
func commonDir(dir string) string {
	common, _ := readLine(filepath.Join(dir, "commondir"), "")
	return common
}

// gitDirAt is the git directory that name leads to, seen from a folder; "" if it is none.
func gitDirAt(from, name string) string {
	if name == "" {
		return ""
	}
	dir := rooted(from, name)
	if dir == "" || !isGitDir(func(name string) bool { return exists(filepath.Join(dir, name)) }) {
		return ""
	}
	return dir
}

// planted lists what stands there now and did not, and what has another name and was changed.
// What was looked through and has not changed since is not looked through again.
func (g guard) planted() (list []string) {
	l := look{root: g.root, skip: g.skip, left: mostNew, was: g.folders, folders: map[string]stamp{}}
	var changed []string
	for rel, was := range g.folders {
		_, now, ok := g.stat(rel)
		if ok && (now != was || now.changed.After(g.opened.Add(-coarse))) {
			changed = append(changed, rel)
		}
	}
	slices.SortFunc(changed, byDepth)
	l.through(changed)
	for _, rel := range l.found {
		// What was not seen before need not be new, if not all was looked through.
		if id, now, ok := g.stat(rel); ok && !g.known[id] && (g.whole || now.changed.After(g.opened.Add(-coarse))) {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	for _, rel := range g.places {
		if id, _, ok := g.stat(rel); ok && !g.known[id] {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	for rel, was := range g.shared {
		if _, now, ok := g.stat(rel); ok && now != was {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (g guard) stat(rel string) (fileID, stamp, bool) {
	info, err := os.Lstat(filepath.Join(g.root, rel))
	if err != nil {
		return fileID{}, stamp{}, false
	}
	s := stampOf(info)
	return s.id, s, true
}
