package face

import (
	"strings"
	"testing"
)

func TestVisibleWriter(t *testing.T) {
	const text = "plain\tü€😀\n\x1b]0;title\a\x1b[6nend \xff\n"
	for size := 1; size <= len(text); size++ {
		var b strings.Builder
		w := NewVisibleWriter(&b)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatalf("Write = %d, %v, want %d", got, err, n)
			}
			rest = rest[n:]
		}
		if want := Visible(text); b.String() != want || strings.Contains(want, "\x1b") {
			t.Errorf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}
