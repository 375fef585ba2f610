package search

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"skein/tools"
)

// What became of a file that was to be searched.
const (
	unreadable = iota // vanished, or closed to us
	tooLarge
	binary
	searched
)

// findings are the hits in one file: each is its line and the lines around it, as shown.
type findings struct {
	state int
	info  fs.FileInfo // of what was searched
	hits  []string
}

const (
	maxFile  = 64 << 20 // bytes of a file that is searched
	maxLine  = 250      // bytes of a line that are shown
	probe    = 8000     // bytes in which a NUL makes a file binary, as with git
	leadText = 60       // bytes shown before a hit far into a long line
)

func find(fsys tools.FS, name string, m matcher, context int) findings {
	data, info, state := read(fsys, name)
	if state != searched {
		return findings{state: state}
	}
	return findings{state: searched, info: info, hits: (&finder{show: tools.Show(name), data: data, context: context}).run(m)}
}

func read(fsys tools.FS, name string) ([]byte, fs.FileInfo, int) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, unreadable
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil, unreadable
	}
	if info.Size() > maxFile {
		return nil, nil, tooLarge
	}
	// The file may grow meanwhile; room for one byte more saves ReadAll a last doubling.
	buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := io.Copy(buf, io.LimitReader(f, maxFile)); err != nil {
		return nil, nil, unreadable
	}
	data := buf.Bytes()
	if bytes.IndexByte(data[:min(probe, len(data))], 0) >= 0 {
		return nil, nil, binary
	}
	return data, info, searched
}

// A finder goes through one file's text as a whole, which is many times faster than line by
// line where hits are few.
type finder struct {
	show    string
	data    []byte
	context int
	hits    []string
	shown   int // the end of what was shown
	last    int // the number of the last line that was shown
}

// run returns the hits, and one more than an answer can hold if there are as many.
func (f *finder) run(m matcher) []string {
	line, pos := 1, 0
	start, at := f.next(m, 0)
	for start < len(f.data) && len(f.hits) <= maxHits {
		line += bytes.Count(f.data[pos:start], []byte{'\n'})
		nextStart, nextAt := f.next(m, f.after(start))
		f.hit(line, start, at, nextStart)
		pos, start, at = start, nextStart, nextAt
	}
	return f.hits
}

// next looks for the next line with a match, from the beginning of a line. It returns where
// the line and the match begin, or the end of the text for both.
func (f *finder) next(m matcher, pos int) (start, at int) {
	end := len(f.data)
	if pos == end {
		return end, end // the empty rest behind the last newline is no line
	}
	at = m.index(f.data[pos:])
	if at < 0 {
		return end, end
	}
	at += pos
	return bytes.LastIndexByte(f.data[:at], '\n') + 1, at
}

// after returns the beginning of the line behind the one that at is in.
func (f *finder) after(at int) int {
	if i := bytes.IndexByte(f.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(f.data)
}

// hit shows the line at start with its context: before it what no earlier hit has shown,
// behind it as far as the next hit.
func (f *finder) hit(line, start, at, nextHit int) {
	var b strings.Builder
	from, n := start, line
	for n > 1 && line-n < f.context && from > f.shown {
		from = bytes.LastIndexByte(f.data[:from-1], '\n') + 1
		n--
	}
	if f.context > 0 && f.last > 0 && n > f.last+1 {
		b.WriteString("--\n")
	}
	for ; n <= line || n <= line+f.context && from < nextHit; n++ {
		next, mark, show := f.after(from), byte('-'), from
		if n == line {
			mark, show = ':', at
		}
		f.write(&b, mark, n, from, next, show)
		from, f.shown, f.last = next, next, n
	}
	f.hits = append(f.hits, b.String())
}

func (f *finder) write(b *strings.Builder, mark byte, n, from, next, at int) {
	fmt.Fprintf(b, "%s%c%d%c%s\n", f.show, mark, n, mark, cut(f.data[from:next], at-from))
}

// cut returns a line without its ending and, if it is long, what stands around its hit.
func cut(line []byte, at int) string {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
	if len(line) <= maxLine {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := 0
	if at+leadText > maxLine {
		from = min(at-leadText, len(line)-maxLine)
	}
	to := from + maxLine
	for from > 0 && from < at && !utf8.RuneStart(line[from]) {
		from++
	}
	for to < len(line) && to > at && !utf8.RuneStart(line[to]) {
		to--
	}
	text := strings.ToValidUTF8(string(line[from:to]), "\uFFFD")
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}
