package face

import (
	"strings"

	"skein/tools/gate"
)

// joiners are the two characters without a width that scripts and emoji cannot be written without.
const joiners = "\u200c\u200d"

// Visible returns text of a model or a tool in a form that a terminal only shows, as
// [gate.Visible] does for questions; it leaves joiners in, since answers are read, not judged.
func Visible(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(s, joiners)
		if i < 0 {
			b.WriteString(gate.Visible(s))
			return b.String()
		}
		b.WriteString(gate.Visible(s[:i]))
		n := len("\u200c")
		b.WriteString(s[i : i+n])
		s = s[i+n:]
	}
}

// Line is [Visible] on one line, shortened to at most limit characters.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Visible(s)), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}
