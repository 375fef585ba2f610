package ignore

import "strings"

// matchName matches one element of a path with "*", "?", "[...]" and "\", byte by byte as git
// does. Going back to the latest star only keeps it fast for any pattern a repository holds.
func matchName(pattern, name string) bool {
	p, n := pattern, name
	starred, afterStar, from := false, "", ""
	for n != "" {
		if rest, ok := matchByte(p, n[0]); ok {
			p, n = rest, n[1:]
			continue
		}
		if strings.HasPrefix(p, "*") {
			p = p[1:]
			starred, afterStar, from = true, p, n
			continue
		}
		if !starred {
			return false
		}
		from = from[1:]
		p, n = afterStar, from
	}
	return strings.Trim(p, "*") == ""
}

// matchByte matches the first unit of pattern, if it is not a star, with c.
func matchByte(pattern string, c byte) (rest string, ok bool) {
	if pattern == "" {
		return "", false
	}
	switch pattern[0] {
	case '*':
		return "", false
	case '?':
		return pattern[1:], true
	case '[':
		in, rest, ok := class(pattern, c)
		return rest, ok && in
	case '\\':
		// A backslash at the very end makes the pattern match nothing.
		if len(pattern) == 1 {
			return "", false
		}
		pattern = pattern[1:]
	}
	return pattern[1:], pattern[0] == c
}

// class reads the bracket expression that s begins with and tells whether c is in it. It is
// not ok if the brackets do not close.
func class(s string, c byte) (in bool, rest string, ok bool) {
	s = s[1:]
	negate := strings.HasPrefix(s, "!") || strings.HasPrefix(s, "^")
	if negate {
		s = s[1:]
	}
	for first := true; ; first = false {
		switch {
		case s == "":
			return false, "", false
		case s[0] == ']' && !first:
			return in != negate, s[1:], true
		case strings.HasPrefix(s, "[:"):
			name, after, closed := strings.Cut(s[2:], ":]")
			test, known := classes[name]
			if !closed || !known {
				return false, "", false
			}
			in = in || test(c)
			s = after
			continue
		}
		var lo byte
		if lo, s, ok = classByte(s); !ok {
			return false, "", false
		}
		hi := lo
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			if hi, s, ok = classByte(s[1:]); !ok {
				return false, "", false
			}
		}
		in = in || c == lo || lo <= c && c <= hi
	}
}

func classByte(s string) (c byte, rest string, ok bool) {
	if s[0] == '\\' {
		if s = s[1:]; s == "" {
			return 0, "", false
		}
	}
	return s[0], s[1:], true
}

// classes are the names that may stand in [:...:].
var classes = map[string]func(byte) bool{
	"alpha":  letter,
	"digit":  digit,
	"alnum":  func(c byte) bool { return letter(c) || digit(c) },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"print":  func(c byte) bool { return ' ' <= c && c < 0x7f },
	"graph":  func(c byte) bool { return ' ' < c && c < 0x7f },
	"punct":  func(c byte) bool { return ' ' < c && c < 0x7f && !letter(c) && !digit(c) },
	"xdigit": func(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }
