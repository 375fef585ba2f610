package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skein/sandbox/boxinit"
)

// mostEntries bounds how much of a workspace is looked through for git directories when a
// box is opened: about 5 ms.
const mostEntries = 5_000

// A guard knows the places of a writable workspace where a command could leave what somebody
// obeys outside of the box: git, or this program. What stands there already is shown
// read-only. For what does not there is no means, without making it on the host: the guard
// can only tell, afterwards.
type guard struct {
	root   string                 // host folder of the workspace
	places []string               // relative to root
	was    map[string]fs.FileInfo // what stood there, if anything did
}

// guardFor looks at the workspace, and adds the mounts that close what it finds.
func guardFor(p Policy, view string, spec *boxinit.Spec) (guard, error) {
	g := guard{root: p.Workspace, was: map[string]fs.FileInfo{}}
	if !p.Writable || p.Layers != nil {
		return g, nil // what is changed in layers goes into a folder in which nobody else uses git
	}
	covered := map[string]bool{} // relative; decided on by other parts of the plan
	for _, m := range spec.Mounts {
		rel, err := filepath.Rel(view, string(m.Target))
		if err != nil || !filepath.IsLocal(rel) || slices.ContainsFunc(p.Scopes, func(scope string) bool { return within(scope, rel) }) {
			continue
		}
		covered[rel] = true
		if m.Kind == boxinit.Hide && inScopes(p.Scopes, rel) {
			if _, err := os.Lstat(filepath.Join(g.root, rel)); err != nil {
				g.places = append(g.places, rel) // absent, so that nothing will be put over it
			}
		}
	}
	for _, rel := range gitPlaces(g.root, p.Scopes, covered) {
		path := filepath.Join(g.root, rel)
		g.places = append(g.places, rel)
		exists, err := fixed(path)
		if err != nil {
			return g, err
		}
		if !exists {
			continue
		}
		if g.was[rel], err = os.Lstat(path); err != nil {
			return g, &policyError{err, "try again"}
		}
		spec.Mounts = append(spec.Mounts, boxinit.Mount{Kind: boxinit.Bind, Source: boxinit.Raw(path), Target: boxinit.Raw(filepath.Join(view, rel))})
	}
	return g, nil
}

// gitPlaces lists where git looks for a git directory in the folders below scopes, those near
// the top first.
func gitPlaces(root string, scopes []string, covered map[string]bool) (places []string) {
	left := mostEntries
	for queue := slices.Clone(scopes); len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		if place := filepath.Join(dir, ".git"); !covered[place] {
			places = append(places, place)
		}
		names := folders(filepath.Join(root, dir), &left)
		for _, name := range names {
			if rel := filepath.Join(dir, name); name != ".git" && name != "node_modules" && !covered[rel] {
				queue = append(queue, rel)
			}
		}
	}
	return places
}

// folders lists the folders in dir, as long as entries are left to be looked at. What cannot
// be read has none.
func folders(dir string, left *int) (names []string) {
	if *left <= 0 {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	entries, _ := f.ReadDir(*left)
	*left -= len(entries)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// planted lists the places at which something stands that did not.
func (g guard) planted() (list []string) {
	for _, rel := range g.places {
		now, err := os.Lstat(filepath.Join(g.root, rel))
		if err != nil {
			continue
		}
		if was := g.was[rel]; was == nil || !os.SameFile(was, now) {
			list = append(list, filepath.ToSlash(rel))
		}
	}
	slices.SortFunc(list, strings.Compare)
	return slices.Compact(list)
}
