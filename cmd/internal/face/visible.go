package face

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns text of a model or a tool in a form that a terminal only shows: control
// characters, and those that turn the direction of writing, are written out as escapes. Tabs
// and line ends stay.
func Visible(s string) string {
	if strings.IndexFunc(s, acts) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if acts(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is [Visible] on one line, shortened to at most limit characters.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Visible(s)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// acts reports whether a terminal would do something else with r than show it.
func acts(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u200e', '\u200f', '\u061c':
		return true
	}
	return unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func escape(r rune) string {
	if r < 0x100 {
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
