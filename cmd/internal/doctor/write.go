package doctor

import (
	"fmt"
	"io"
	"strings"
)

// marks stand before each line, with their colours.
var marks = map[State]struct{ mark, colour string }{
	Good: {"✓", "\x1b[32m"},
	Bad:  {"✗", "\x1b[31m"},
	Note: {"–", "\x1b[2m"},
}

// Write writes a report for people, a line for each check. Its
// texts must be safe to show.
func (r Report) Write(out io.Writer, colour bool) error {
	var b strings.Builder
	section := ""
	for _, c := range r.Checks {
		if c.Section != section {
			section = c.Section
			fmt.Fprintln(&b, section)
		}
		mark := marks[c.State].mark
		if colour {
			mark = marks[c.State].colour + mark + "\x1b[0m"
		}
		fmt.Fprintf(&b, "  %s %-27s %s\n", mark, c.What, c.Detail)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
