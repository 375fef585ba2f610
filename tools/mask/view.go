package mask

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A view is a text with its escapes undone, so that a secret is found however it is escaped.
//
// A unit of the text is what becomes one character of the view: a run of backslashes with
// the character after it (or four hexadecimal digits, after a u), or a character; in a view
// of URLs, a percent sign and two hexadecimal digits are a character, too. How long the run is does not matter: it grows with
// each JSON that the text was put into. Secrets are brought into the same form, so nothing
// is missed; a text that differs from a secret in backslashes alone is taken for it.
//
// Only whole units are ever masked: that keeps JSON valid at every depth.
type view struct {
	text []byte
	at   []int // for each byte of text, and for its end, where its unit begins in the source; nil: text is the source
}

func newView(b []byte, urls bool) view {
	if bytes.IndexByte(b, '\\') < 0 && (!urls || bytes.IndexByte(b, '%') < 0) {
		return view{text: b}
	}
	v := view{text: make([]byte, 0, len(b)), at: make([]int, 0, len(b)+1)}
	for i := 0; i < len(b); {
		n := len(v.text)
		size := 1
		if b[i] == '\\' || urls && b[i] == '%' {
			v.text, size = unit(v.text, b[i:], urls)
		} else {
			v.text = append(v.text, b[i])
		}
		for range len(v.text) - n {
			v.at = append(v.at, i)
		}
		i += size
	}
	v.at = append(v.at, len(b))
	return v
}

// controls are characters that JSON writes as a backslash and a letter.
const controls, letters = "\n\r\t\b\f", "nrtbf"

// unit appends what the first unit of b stands for, and returns the size of that unit. B
// begins with a backslash or a percent sign. Nothing stands for a backslash alone.
func unit(out, b []byte, urls bool) ([]byte, int) {
	n := run(b, urls)
	if n == len(b) {
		return out, n
	}
	c, size := char(b[n:], urls)
	if n == 0 {
		return append(out, c), size
	}
	if c == 'u' {
		if r, ok := hex(b[n+size:], 4); ok {
			return escaped(out, r, b, n+size+4, urls)
		}
	}
	if i := strings.IndexByte(letters, c); i >= 0 {
		c = controls[i]
	}
	return append(out, c), n + size
}

// run returns how many bytes at the front of b stand for backslashes and nothing else.
func run(b []byte, urls bool) int {
	n := 0
	for n < len(b) {
		switch {
		case b[n] == '\\':
			n++
		case urls && hasPrefixFold(b[n:], "%5c"):
			n += 3
		case n > 0 && hasPrefixFold(b[n:], "u005c"):
			n += 5
		default:
			return n
		}
	}
	return n
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && strings.EqualFold(string(b[:len(prefix)]), prefix)
}

// char returns the first character of b, which is a byte, and its size.
func char(b []byte, urls bool) (byte, int) {
	if urls && b[0] == '%' {
		if r, ok := hex(b[1:], 2); ok {
			return byte(r), 3
		}
	}
	return b[0], 1
}

// escaped appends the character of an escape that ends at size in b; the second half of a
// pair may follow it.
func escaped(out []byte, r rune, b []byte, size int, urls bool) ([]byte, int) {
	if n := run(b[size:], urls); utf16.IsSurrogate(r) && n > 0 && size+n < len(b) && b[size+n] == 'u' {
		low, _ := hex(b[size+n+1:], 4)
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), size + n + 5
		}
	}
	return utf8.AppendRune(out, r), size
}

// folded returns the view as secrets are looked for in it. What stands for a line break may
// also be a backslash and an n, in a secret that has those: both are an n here.
func (v view) folded() []byte {
	if v.at == nil {
		return v.text
	}
	out := bytes.Clone(v.text)
	for i, c := range out {
		if c >= ' ' {
			continue // most are no controls
		}
		if n := strings.IndexByte(controls, c); n >= 0 {
			out[i] = letters[n]
		}
	}
	return out
}

func hex(b []byte, digits int) (rune, bool) {
	if len(b) < digits {
		return 0, false
	}
	if strings.Trim(string(b[:digits]), "0123456789abcdefABCDEF") != "" {
		return 0, false // a sign or an underscore, which the library would take
	}
	n, err := strconv.ParseUint(string(b[:digits]), 16, 32)
	return rune(n), err == nil
}

// source returns the part of the source that a part of the view stands for.
func (v view) source(s span) span {
	if v.at == nil {
		return s
	}
	return span{v.at[s.from], v.at[s.to], s.looks}
}

// whole widens a part of the source to whole units.
func (v view) whole(s span) span {
	return span{v.unitAt(s.from), v.at[sort.SearchInts(v.at, s.to)], s.looks}
}

// unitAt returns where the unit begins that holds a place of the source.
func (v view) unitAt(i int) int {
	if v.at == nil {
		return i
	}
	if n := sort.SearchInts(v.at, i+1); n > 0 {
		return v.at[n-1]
	}
	return 0
}
