package face

import (
	"io"
	"strings"
	"unicode/utf8"

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

// A VisibleWriter writes what [Visible] makes of text that comes in pieces.
type VisibleWriter struct {
	to   io.Writer
	part []byte // the beginning of a character
}

// NewVisibleWriter writes to a terminal.
func NewVisibleWriter(to io.Writer) *VisibleWriter { return &VisibleWriter{to: to} }

// Write keeps a character that is not whole yet until its rest comes.
func (w *VisibleWriter) Write(p []byte) (int, error) {
	text := append(w.part, p...)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if start := text[len(text)-i:]; utf8.RuneStart(start[0]) {
			if !utf8.FullRune(start) {
				whole -= i
			}
			break
		}
	}
	w.part = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, Visible(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
