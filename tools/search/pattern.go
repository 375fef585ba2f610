package search

import (
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"skein/tools"
)

// lineRegexp compiles a regular expression so that it finds in a whole file what it would find
// in each line alone: no match goes across a newline, ^ and $ are a line's ends.
func lineRegexp(pattern string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err == nil {
		withinLine(tree)
		var re *regexp.Regexp
		if re, err = regexp.Compile(tree.String()); err == nil {
			return re, nil
		}
	}
	at := badAt(pattern, func(s string) bool {
		_, err := syntax.Parse(s, syntax.Perl)
		return err == nil
	})
	return nil, &tools.Fault{
		What: fmt.Sprintf("bad pattern at character %d: %s", at, strings.TrimPrefix(err.Error(), "error parsing regexp: ")),
		Next: `patterns are RE2 regular expressions, without look-around and back-references; put \ before ( ) [ ] { } . * + ? | ^ $ that are meant as such`,
	}
}

func withinLine(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			*re = syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpCharClass:
		var ranges []rune
		for i := 0; i < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			if lo <= '\n' && '\n' <= hi {
				if lo < '\n' {
					ranges = append(ranges, lo, '\n'-1)
				}
				lo = '\n' + 1
			}
			if lo <= hi {
				ranges = append(ranges, lo, hi)
			}
		}
		if re.Rune = ranges; len(ranges) == 0 {
			*re = syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op, re.Flags = syntax.OpEndLine, re.Flags&^syntax.WasDollar
	}
	for _, sub := range re.Sub {
		withinLine(sub)
	}
}

// badAt returns the place, from 1, of the first character that no valid pattern before it can
// take in: the one behind the longest beginning that is valid.
func badAt(pattern string, valid func(string) bool) int {
	const most = 1000 // characters; the search is quadratic
	runes := []rune(pattern)
	for n := min(len(runes)-1, most); n > 0; n-- {
		if valid(string(runes[:n])) {
			return n + 1
		}
	}
	return 1
}

// A fileGlob matches paths. One without a slash matches names at any depth, one with a slash
// the path below a folder.
type fileGlob struct{ pattern string }

func parseGlob(ws tools.Workspace, pattern string) (fileGlob, error) {
	if path.IsAbs(pattern) {
		rest, below := strings.CutPrefix(pattern, strings.TrimSuffix(ws.Path, "/")+"/")
		if !below {
			_, err := ws.Name(pattern)
			return fileGlob{}, err
		}
		pattern = "/" + rest
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if pattern == "" || slices.Contains(strings.Split(pattern, "/"), "..") {
		return fileGlob{}, &tools.Fault{What: fmt.Sprintf("bad pattern %q: it must be a path below the workspace", pattern), Next: "use path for the folder to look in"}
	}
	if !doublestar.ValidatePattern(pattern) {
		return fileGlob{}, &tools.Fault{
			What: fmt.Sprintf("bad pattern at character %d", badAt(pattern, doublestar.ValidatePattern)),
			Next: `a pattern has * ? ** [ab] {a,b}; put \ before such a character that is meant as itself`,
		}
	}
	return fileGlob{pattern}, nil
}

// match tells whether a file, given by its path in the workspace and the folder looked in, is
// meant.
func (g fileGlob) match(root, name string) bool {
	pattern := g.pattern
	switch {
	case strings.HasPrefix(pattern, "/"): // written as an absolute path
		pattern = pattern[1:]
	case !strings.Contains(pattern, "/"):
		name = path.Base(name)
	case root != ".":
		name = strings.TrimPrefix(name, root+"/")
	}
	return doublestar.MatchUnvalidated(pattern, name)
}
