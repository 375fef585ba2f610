package search

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"skein/tools"
)

// A matcher is a regular expression that finds in a whole file what it would find in each line
// alone: no match goes across a newline, ^ and $ are a line's ends.
type matcher struct {
	re      *regexp.Regexp
	literal []byte // stands in every match; may be empty
}

func parseRegexp(pattern string) (matcher, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err == nil {
		withinLine(tree)
		m := matcher{literal: []byte(literal(tree))}
		if m.re, err = regexp.Compile(tree.String()); err == nil {
			return m, nil
		}
	}
	at := badAt(pattern, func(s string) bool {
		_, err := syntax.Parse(s, syntax.Perl)
		return err == nil
	})
	return matcher{}, &tools.Fault{
		What: fmt.Sprintf("bad pattern at character %d: %s", at, strings.TrimPrefix(err.Error(), "error parsing regexp: ")),
		Next: `patterns are RE2 regular expressions, without look-around and back-references; put \ before ( ) [ ] { } . * + ? | ^ $ that are meant as such`,
	}
}

// index returns where the first match begins, or -1. Most files hold no match, and looking for
// a piece of plain text first is many times faster than the regular expression.
func (m matcher) index(data []byte) int {
	if !bytes.Contains(data, m.literal) {
		return -1
	}
	if loc := m.re.FindIndex(data); loc != nil {
		return loc[0]
	}
	return -1
}

// literal returns the longest text that every match must hold, as far as that is easy to see.
func literal(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		// U+FFFD also matches a byte that is no UTF-8.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literal(re.Sub[0])
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if l := literal(sub); len(l) > len(longest) {
				longest = l
			}
		}
		return longest
	}
	return ""
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
		name, err := ws.Name(pattern)
		if err != nil {
			return fileGlob{}, err
		}
		pattern = "/" + name
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
