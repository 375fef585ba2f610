package mask

import (
	"strings"
	"testing"
)

// repeats are texts of a size that hold the beginnings of keys over and over, and no key.
func repeats(size int) map[string]string {
	all := map[string]string{}
	add := func(unit string) {
		all[unit] = strings.Repeat(unit, size/len(unit)+1)[:size]
	}
	for _, p := range patterns() {
		for _, between := range []string{"", " ", "-", "_", ".", "a-", "\n", "aaaaaaaa.", "b-aa_"} {
			add(p.head + between)
		}
	}
	add("-----BEGIN PRIVATE KEY-----")
	add("-----BEGIN PRIVATE KEY-----\n")
	add("-----BEGIN PRIVATE KEY----- -----END ")
	return all
}

// However often a text seems to begin a key, it is read about once: the work grows with the
// text, not with its square. Journals are masked under a lock.
func TestWorkGrowsWithTheText(t *testing.T) {
	const size = 64 << 10
	for unit, text := range repeats(size) {
		for _, p := range patterns() {
			work := 0
			counted := p
			counted.rest = func(after []byte) (int, int) {
				n, seen := p.rest(after)
				work += seen
				return n, seen
			}
			findPatterns([]pattern{counted}, []byte(text), nil)
			if work > 2*size {
				t.Errorf("%q in %d bytes of %q: %d bytes were read", p.head, size, unit, work)
			}
		}
	}
}

// What was refused hides no key that follows it at once.
func TestKeyAfterWhatIsNone(t *testing.T) {
	m := New(nil)
	const key = "0123456789abcdefghij0123456789"
	for in, want := range map[string]string{
		"sk-folding sk-" + key:                         "sk-folding [secret masked]",
		"sk-folding.sk-" + key:                         "sk-folding.[secret masked]",
		"Bearer a-Bearer " + key:                       "Bearer a-Bearer [secret masked]",
		"xoxa-short_xoxb-" + key:                       "xoxa-short_[secret masked]",
		"xoxa-xoxz-xoxb-" + key:                        "[secret masked]",
		"eyJ-eyJ.eyJhbGciOiJI.eyJzdWIiOiIx.c":          "eyJ-eyJ.[secret masked]",
		"AKIA AKIAIOSFODNN7EXAMPLE":                    "AKIA [secret masked]",
		"-----BEGIN -----BEGIN PRIVATE KEY-----" + key: "-----BEGIN [secret masked]",
	} {
		if got := string(m.Written([]byte(in))); got != want {
			t.Errorf("Written(%s) = %s, want %s", in, got, want)
		}
	}
}

func BenchmarkWrittenHeads(b *testing.B) {
	m := New(nil)
	line := []byte(strings.Repeat("sk-", 1<<20/3))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		m.Written(line)
	}
}
