// Package files holds the tools that read and write whole files, and the [Record] that ties
// them together: what an agent has not seen it does not overwrite.
package files

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"skein/scheduler"
	"skein/tools"
)

// maxResult is the size in bytes of the largest answer of read_file, notices included.
const maxResult = 10_000

// noticeRoom is kept free in it for what is said below the lines.
const noticeRoom = 300

type readArgs struct {
	Path        string `json:"path"`
	StartLine   int    `json:"start_line,omitempty" jsonschema:"from 1"`
	MaxLines    int    `json:"max_lines,omitempty"`
	LineNumbers *bool  `json:"line_numbers,omitempty" jsonschema:"default true"`
}

// Read returns the tool read_file. What it shows is noted in rec.
func Read(rec *Record) tools.Tool {
	spec := tools.Spec{
		Name:        "read_file",
		Description: "Read a UTF-8 text file, 10,000 bytes at most; a longer one says how to go on. Lines are shown as `  12| text`; the number and bar are not part of the file. Not for directories: use list_files.",
	}
	return tools.New(spec, scheduler.Read, func(ctx context.Context, ws tools.Workspace, in readArgs) (tools.Result, error) {
		text, err := rec.read(ctx, ws, in)
		if err != nil {
			return tools.Failed(spec.Name, err), ctx.Err()
		}
		return tools.Result{Text: text}, nil
	})
}

func (r *Record) read(ctx context.Context, ws tools.Workspace, in readArgs) (string, error) {
	if in.StartLine < 0 || in.MaxLines < 0 {
		return "", &tools.Fault{What: "start_line and max_lines must not be negative", Next: "lines are counted from 1"}
	}
	t, err := ws.Load(ctx, in.Path)
	if err != nil {
		return "", err
	}
	lines := split(t.Data)
	first := max(in.StartLine, 1) - 1
	if first > 0 && first >= len(lines) {
		return "", &tools.Fault{
			What: fmt.Sprintf("%s: start_line %d is behind the end: it has %d lines", tools.Show(t.Name), in.StartLine, len(lines)),
			Next: "choose a smaller start_line",
		}
	}
	end := len(lines)
	if in.MaxLines > 0 {
		end = min(end, first+in.MaxLines)
	}
	p := page{lines: lines, numbers: in.LineNumbers == nil || *in.LineNumbers}
	p.render(first, end)
	p.notices(t, first)
	r.Shown(t.Name, t.Data, p.from, p.to)
	return p.out.String(), nil
}

// A line is one line of a file with the place of its first byte. Its end of line belongs to
// it in the file and is not part of text.
type line struct {
	at   int
	text string
	size int // with its end of line
}

func split(data string) []line {
	var lines []line
	at := 0
	for l := range strings.Lines(data) {
		text := strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")
		lines = append(lines, line{at: at, text: text, size: len(l)})
		at += len(l)
	}
	if len(lines) > 0 {
		lines[0].text = strings.TrimPrefix(lines[0].text, "\uFEFF")
	}
	return lines
}

// A page is the part of a file that one answer shows.
type page struct {
	lines    []line
	numbers  bool
	out      strings.Builder
	from, to int // bytes of the file that are shown
	next     int // index of the first line that is not
	cut      int // bytes shown of a line that is longer than a page, 0 if there is none
}

// render writes lines first up to end as far as they fit.
func (p *page) render(first, end int) {
	p.next = first
	if first < end {
		p.from, p.to = p.lines[first].at, p.lines[first].at
	}
	for i := first; i < end; i++ {
		l, prefix := p.lines[i], ""
		if p.numbers {
			prefix = fmt.Sprintf("%4d| ", i+1)
		}
		room := maxResult - noticeRoom - p.out.Len() - len(prefix) - 1
		if len(l.text) > room && i > first {
			return
		}
		p.next, p.to = i+1, l.at+l.size
		if len(l.text) > room {
			for !utf8.RuneStart(l.text[room]) {
				room--
			}
			l.text, p.cut, p.to = l.text[:room], room, l.at+room
		}
		p.out.WriteString(prefix + l.text + "\n")
		if p.cut > 0 {
			return
		}
	}
}

// notices writes what the lines themselves do not tell, each in brackets on a line.
func (p *page) notices(t tools.Text, first int) {
	if t.Data == "" {
		p.out.WriteString("[the file is empty]\n")
	}
	if p.cut > 0 {
		n := first + 1
		fmt.Fprintf(&p.out, "[line %d has %d bytes, cut after %d; bash shows more of it: sed -n %dp FILE | cut -b %d-]\n", n, len(p.lines[first].text), p.cut, n, p.cut+1)
	}
	if strings.Contains(t.Data, "\r\n") {
		p.out.WriteString("[line endings are CRLF]\n")
	}
	if first > 0 || p.next < len(p.lines) {
		fmt.Fprintf(&p.out, "[lines %d-%d of %d", first+1, p.next, len(p.lines))
		if p.next < len(p.lines) {
			fmt.Fprintf(&p.out, "; go on with start_line %d", p.next+1)
		}
		p.out.WriteString("]\n")
	}
}
