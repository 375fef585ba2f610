package worktree

import (
	"path"
	"strings"
)

// withoutRepositories leaves out what a change would put into git directories by other names
// than .git, new ones or the user's own: git runs what their configuration and hooks say
// for whoever asks it something in them. Git knows one by HEAD with objects and refs, or with
// a file that says where those are.
func (s *staging) withoutRepositories(files []string) []string {
	if !s.rules.repositories {
		return files
	}
	heads := map[string]bool{}
	has := map[string]bool{} // folder of a HEAD, and the name in it
	each := func(f func(name string)) {
		for name := range s.known {
			f(name)
		}
		for _, name := range files {
			f(name)
		}
	}
	each(func(name string) {
		if dir, base := path.Split(name); dir != "" && strings.EqualFold(base, "HEAD") {
			heads[dir] = true
		}
	})
	if len(heads) == 0 {
		return files
	}
	each(func(name string) {
		for i, c := range name {
			if dir := name[:i+1]; c == '/' && heads[dir] {
				first, _, _ := strings.Cut(name[i+1:], "/")
				has[dir+strings.ToLower(first)] = true
			}
		}
	})
	var taken []string
	left := map[string]bool{}
next:
	for _, name := range files {
		for i, c := range name {
			dir := name[:i+1]
			if c == '/' && heads[dir] && (has[dir+"objects"] && has[dir+"refs"] || has[dir+"commondir"]) {
				if !left[dir] {
					s.left = append(s.left, Left{strings.TrimSuffix(dir, "/"), LeftNested})
				}
				left[dir] = true
				continue next
			}
		}
		taken = append(taken, name)
	}
	return taken
}
