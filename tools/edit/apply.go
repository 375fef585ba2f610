// Package edit replaces text in files: [Apply] is the pure edit, [SearchReplace] the tool.
package edit

import (
	"errors"
	"fmt"
	"strings"
)

// ErrEmpty is returned for an empty search text, which is found everywhere and nowhere.
var ErrEmpty = errors.New("search is empty")

// A MatchError says that the search text was not found exactly once.
type MatchError struct {
	Count int   // 0, or more than 1
	Lines []int // where the first matches begin, from 1
	Close *Close
}

func (e *MatchError) Error() string {
	if e.Count == 0 {
		return "search text not found"
	}
	return fmt.Sprintf("search text found %d times", e.Count)
}

// A Span is where a replacement stands: bytes from Start up to End of the old or the new text.
type Span struct{ Start, End int }

// An Edit is what [Apply] made of a text.
type Edit struct {
	Text     string
	Old, New []Span // of each replacement, in the source and in Text
}

// Apply replaces the one occurrence of search in src, or every one of them if all is set.
// Bytes outside the occurrences stay as they are. In a text with CRLF line endings, a line
// ending of search matches either kind, and those of replace become what they replace, or
// what the line around it has.
//
// The error is [ErrEmpty], or a [*MatchError] for a text that is not there or, without all,
// is there more than once. Occurrences that overlap count as several, since which of them is
// meant is then as open; all takes those that do not, from the left.
func Apply(src, search, replace string, all bool) (Edit, error) {
	if search == "" {
		return Edit{}, ErrEmpty
	}
	m := newMatcher(src, search)
	spans, count := m.find(all)
	switch {
	case count == 0:
		return Edit{}, &MatchError{Close: closest(m.text, m.search)}
	case count > 1 && !all:
		return Edit{}, &MatchError{Count: count, Lines: lineNumbers(src, spans)}
	}
	var out strings.Builder
	e := Edit{Old: spans}
	at := 0
	for _, s := range spans {
		out.WriteString(src[at:s.Start])
		start := out.Len()
		out.WriteString(m.ending(s, replace))
		e.New = append(e.New, Span{start, out.Len()})
		at = s.End
	}
	out.WriteString(src[at:])
	e.Text = out.String()
	return e, nil
}

// A matcher finds search in src. If src has CRLF line endings it looks in a copy where each
// of them is a single newline, and maps what it finds back.
type matcher struct {
	src, text, search string
	crlf              bool
	returns           []int // in text: newlines that are CRLF in src, ascending
}

func newMatcher(src, search string) *matcher {
	m := &matcher{src: src, text: src, search: search, crlf: strings.Contains(src, "\r\n")}
	if !m.crlf {
		return m
	}
	m.search = strings.ReplaceAll(search, "\r\n", "\n")
	var b strings.Builder
	for rest := src; ; {
		before, after, found := strings.Cut(rest, "\r\n")
		b.WriteString(before)
		if !found {
			break
		}
		m.returns = append(m.returns, b.Len())
		b.WriteByte('\n')
		rest = after
	}
	m.text = b.String()
	return m
}

// find returns the occurrences that do not overlap; or the first few of all, and how many
// there are.
func (m *matcher) find(apart bool) (spans []Span, count int) {
	const few = 10
	step := 1
	if apart {
		step = len(m.search)
	}
	passed := 0 // CRLFs before at
	for at := 0; ; at += step {
		i := strings.Index(m.text[at:], m.search)
		if i < 0 {
			return spans, count
		}
		at += i
		if count++; !apart && count > few {
			continue
		}
		for passed < len(m.returns) && m.returns[passed] < at {
			passed++
		}
		end, inside := at+len(m.search), passed
		for inside < len(m.returns) && m.returns[inside] < end {
			inside++
		}
		spans = append(spans, Span{at + passed, end + inside})
	}
}

// ending gives replace the line endings that suit the span of src it goes to.
func (m *matcher) ending(s Span, replace string) string {
	if !m.crlf {
		return replace
	}
	replace = strings.ReplaceAll(replace, "\r\n", "\n")
	// The first newline in the span, else the one that ends its line, else the one before.
	i := strings.IndexByte(m.src[s.Start:], '\n')
	if i >= 0 {
		i += s.Start
	} else {
		i = strings.LastIndexByte(m.src[:s.Start], '\n')
	}
	if i > 0 && m.src[i-1] == '\r' {
		return strings.ReplaceAll(replace, "\n", "\r\n")
	}
	return replace
}

// lineNumbers returns the lines in which spans begin.
func lineNumbers(src string, spans []Span) []int {
	var lines []int
	line, at := 1, 0
	for _, s := range spans {
		line += strings.Count(src[at:s.Start], "\n")
		at = s.Start
		lines = append(lines, line)
	}
	return lines
}
