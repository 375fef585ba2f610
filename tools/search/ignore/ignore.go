// Package ignore decides which files of a tree are left out, by the rules of gitignore files.
//
// It knows patterns and paths only; reading the files, and not descending into a folder that
// is left out, is up to who walks the tree.
package ignore

import "strings"

// Rules are the patterns of one file. They apply to paths below the folder it lies in.
type Rules struct{ patterns []pattern }

type pattern struct {
	segments []string
	negate   bool // "!": what an earlier pattern left out is taken in again
	dirOnly  bool // "/" at the end
	anchored bool // a "/" elsewhere: matches the whole path, not just its last element
}

// Parse reads the text of a gitignore file. Every text is valid; a pattern that is malformed
// matches nothing.
func Parse(text string) Rules {
	var r Rules
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		if p, ok := parse(strings.TrimSuffix(line, "\r")); ok {
			r.patterns = append(r.patterns, p)
		}
	}
	return r
}

func parse(line string) (pattern, bool) {
	if strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	line = trimSpaces(line)
	var p pattern
	if p.negate = strings.HasPrefix(line, "!"); p.negate {
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") {
		p.dirOnly = true
		line = line[:len(line)-1]
	}
	if line == "" {
		return pattern{}, false
	}
	p.anchored = strings.Contains(line, "/")
	p.segments = segments(strings.TrimPrefix(line, "/"))
	return p, true
}

// trimSpaces takes off spaces at the end save those that a backslash keeps.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(s))
	}
	return s[:end]
}

// segments splits a pattern at its slashes; one inside brackets does not count, one behind a
// backslash does.
func segments(s string) []string {
	var out []string
	start := 0
	cut := func(end, next int) {
		segment := s[start:end]
		if len(segment) > 2 && strings.Trim(segment, "*") == "" {
			segment = "**"
		}
		out = append(out, segment)
		start = next
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '/':
			cut(i, i+1)
		case '\\':
			if i++; i < len(s) && s[i] == '/' {
				cut(i-1, i+1)
			}
		case '[':
			if _, rest, ok := class(s[i:], 0); ok {
				i = len(s) - len(rest) - 1
			}
		}
	}
	cut(len(s), len(s))
	return out
}

// Match tells what the rules say of a path, slash-separated and relative to the folder of the
// file: ignored or not, or nothing. The last pattern that matches decides.
func (r Rules) Match(path string, dir bool) (ignored, decided bool) {
	for i := len(r.patterns) - 1; i >= 0; i-- {
		if p := r.patterns[i]; p.match(path, dir) {
			return !p.negate, true
		}
	}
	return false, false
}

func (p pattern) match(path string, dir bool) bool {
	if p.dirOnly && !dir {
		return false
	}
	if !p.anchored {
		return matchName(p.segments[0], path[strings.LastIndexByte(path, '/')+1:])
	}
	return matchPath(p.segments, strings.Split(path, "/"))
}

// matchPath matches element by element. "**" stands for any number of elements, at the end
// for at least one. Going back to the latest "**" only is enough: whatever an earlier one
// could take in addition, the latest can as well.
func matchPath(pattern, path []string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			if p == len(pattern)-1 {
				return true
			}
			star, from = p, n
			p++
		case p < len(pattern) && matchName(pattern[p], path[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return p == len(pattern)
}
