package gate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible writes out, as escapes, what a terminal would obey or not show of a stranger's text:
// control characters, those without a width, bytes that are no UTF-8. Tabs and line ends stay.
func Visible(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t' || unicode.IsGraphic(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
