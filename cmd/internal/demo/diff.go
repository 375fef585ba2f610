package demo

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// changed returns the names of the files that differ, sorted.
func changed(before, after map[string]string) []string {
	var names []string
	for name, text := range before {
		if now, ok := after[name]; !ok || now != text {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// The colours of a diff, as terminals have them.
const (
	red, green, cyan, plain = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
)

// diff shows what the run changed, and nothing of what was changed before it.
func diff(out io.Writer, before, after map[string]string, colour bool) error {
	var b strings.Builder
	for _, name := range changed(before, after) {
		for line := range strings.Lines(udiff.Unified("a/"+name, "b/"+name, before[name], after[name])) {
			b.WriteString(tint(line, colour))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func tint(line string, colour bool) string {
	if !colour {
		return line
	}
	text := strings.TrimSuffix(line, "\n")
	for _, t := range []struct{ mark, colour string }{{"---", ""}, {"+++", ""}, {"-", red}, {"+", green}, {"@@", cyan}} {
		if strings.HasPrefix(text, t.mark) && t.colour != "" {
			return t.colour + text + plain + "\n"
		} else if strings.HasPrefix(text, t.mark) {
			break
		}
	}
	return line
}

// names returns the sorted union of lists of names.
func names(lists ...[]string) []string {
	set := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
