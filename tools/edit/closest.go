package edit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Close is the place of a text that comes closest to a search text that is not in it.
type Close struct {
	First, Last int // lines of the place, from 1
	Line        int // the first line that differs
	Column      int // and its first character that does, from 1
	Have, Want  string
}

// closest returns the run of lines of text that agrees best with the lines of search, or nil
// if nothing is alike. Lines that are equal but for white space at their ends vote for where
// search would begin; without any, the line most like the first of search decides.
func closest(text, search string) *Close {
	const most = 1 << 20 // bytes of text; beyond, looking would take longer than it is worth
	if len(text) > most {
		return nil
	}
	lines, want := strings.SplitAfter(text, "\n"), strings.SplitAfter(search, "\n")
	if n := len(want) - 1; want[n] == "" {
		want = want[:n] // search ends with a newline: no further line
	}
	start, found := vote(lines, want)
	if !found {
		start, found = alike(lines, want)
	}
	if !found {
		return nil
	}
	for i, w := range want {
		have := ""
		if start+i < len(lines) {
			have = lines[start+i]
		}
		if agree(have, w, i == 0, i == len(want)-1) {
			continue
		}
		skip := 0
		if i == 0 && strings.TrimLeft(w, " \t") == w {
			skip = len(have) - len(strings.TrimLeft(have, " \t")) // search begins inside the line
		}
		shared := skip + commonPrefix(have[skip:], w)
		return &Close{
			First: start + 1, Last: min(start+len(want), len(lines)),
			Line: start + i + 1, Column: utf8.RuneCountInString(have[:shared]) + 1,
			Have: have, Want: have[:skip] + w,
		}
	}
	return nil
}

// agree reports whether a line of the text can be the one that a line of search means:
// search may begin and end inside a line.
func agree(have, want string, first, last bool) bool {
	last = last && !strings.HasSuffix(want, "\n")
	switch {
	case first && last:
		return strings.Contains(have, want)
	case first:
		return strings.HasSuffix(have, want)
	case last:
		return strings.HasPrefix(have, want)
	default:
		return have == want
	}
}

// vote lets every line of text that stands in search too say where search would begin.
func vote(lines, want []string) (start int, ok bool) {
	const eachLine = 20 // of a search with the same line over and over, enough to decide
	at := map[string][]int{}
	for i, w := range want {
		if t := strings.TrimSpace(w); t != "" && len(at[t]) < eachLine {
			at[t] = append(at[t], i)
		}
	}
	votes := make([]int, len(lines))
	most := 0
	for i, l := range lines {
		for _, j := range at[strings.TrimSpace(l)] {
			s := i - j
			if s < 0 {
				continue
			}
			votes[s]++
			if n := votes[s]; n > most || n == most && s < start {
				start, most = s, n
			}
		}
	}
	return start, most > 0
}

// alike finds the line that shares most of its beginning and end with the first line of
// search that is not blank.
func alike(lines, want []string) (start int, ok bool) {
	first := 0
	for first < len(want)-1 && strings.TrimSpace(want[first]) == "" {
		first++
	}
	w := strings.TrimSpace(want[first])
	best := 0.5 // at least half of the longer one
	for i, l := range lines {
		l = strings.TrimSpace(l)
		longer := max(len(l), len(w))
		if longer == 0 || i < first {
			continue
		}
		shared := commonPrefix(l, w)
		shared += commonSuffix(l[shared:], w[shared:])
		if part := float64(shared) / float64(longer); part > best {
			start, best, ok = i-first, part, true
		}
	}
	return start, ok
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// String shows the place and the first difference, with white space made visible.
func (c *Close) String() string {
	have, want := window(c.Have, c.Column), window(c.Want, c.Column)
	return fmt.Sprintf("closest text: lines %d-%d; first difference in line %d, column %d (white space shown as · → ␍ ␊)\n  file:   %s\n  search: %s",
		c.First, c.Last, c.Line, c.Column, visible(have), visible(want))
}

// window keeps what stands around a column of a long line.
func window(s string, column int) string {
	const before, after = 80, 40
	r := []rune(s)
	from, to := max(0, column-1-before), min(len(r), column-1+after)
	if from > len(r) {
		from = len(r)
	}
	out := string(r[from:max(from, to)])
	if from > 0 {
		out = "…" + out
	}
	if to < len(r) {
		out += "…"
	}
	return out
}

func visible(s string) string {
	return strings.NewReplacer(" ", "·", "\t", "→", "\r", "␍", "\n", "␊").Replace(s)
}
