package face

import "strings"

// The colours of a diff, as terminals have them.
const (
	red, green, cyan, plain = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
)

// Diff returns a unified diff in a form that a terminal only shows, coloured where asked.
func Diff(diff string, colour bool) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		b.WriteString(tint(Visible(strings.TrimSuffix(line, "\n")), colour) + "\n")
	}
	return b.String()
}

// tint colours a line by what it begins with.
func tint(line string, colour bool) string {
	switch {
	case !colour, strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		return line
	case strings.HasPrefix(line, "-"):
		return red + line + plain
	case strings.HasPrefix(line, "+"):
		return green + line + plain
	case strings.HasPrefix(line, "@@"):
		return cyan + line + plain
	}
	return line
}
