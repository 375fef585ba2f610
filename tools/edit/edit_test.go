package edit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/tools"
	"skein/tools/edit"
	"skein/tools/toolstest"
)

type args = toolstest.Args

func TestSpec(t *testing.T) { toolstest.Spec(t, edit.SearchReplace(nil)) }

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name, src, search, replace string
		all                        bool
		want                       string
	}{
		{"one", "a\nb\n", "b", "c", false, "a\nc\n"},
		{"all", "aXbXc", "X", "--", true, "a--b--c"},
		{"all, apart only", "aaa", "aa", "b", true, "ba"},
		{"remove", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"shell signs are text", "x", "x", "$1 ${y} `z` \\1", false, "$1 ${y} `z` \\1"},
		{"LF search in CRLF text", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n"},
		{"one CRLF line becomes two", "a\r\nb\r\n", "a", "x\ny", false, "x\r\ny\r\nb\r\n"},
		{"last line of a CRLF text", "a\r\nb", "b", "x\ny", false, "a\r\nx\r\ny"},
		{"CRLF search in CRLF text", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"},
		{"newline at the front takes its CR", "a\r\nb\r\n", "\nb", "", false, "a\r\n"},
		{"mixed text, LF part", "a\r\nb\nc\nd\r\n", "b\nc", "x\ny", false, "a\r\nx\ny\nd\r\n"},
		{"mixed text, all", "a\nb\r\na\r\nb\n", "a\n", "x\n", true, "x\nb\r\nx\r\nb\n"},
		{"CRLF put into an LF text", "a\nb\n", "a\n", "a\r\n", false, "a\r\nb\n"},
		{"BOM stays", "\uFEFFa\nb\n", "a", "x", false, "\uFEFFx\nb\n"},
	} {
		got, err := edit.Apply(tt.src, tt.search, tt.replace, tt.all)
		if got.Text != tt.want || err != nil {
			t.Errorf("%s: Apply(%q, %q, %q, %v) = %q, %v; want %q", tt.name, tt.src, tt.search, tt.replace, tt.all, got.Text, err, tt.want)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	if _, err := edit.Apply("a", "", "b", true); !errors.Is(err, edit.ErrEmpty) {
		t.Errorf("Apply with an empty search = %v, want ErrEmpty", err)
	}
	for _, tt := range []struct {
		src, search string
		count       int
		lines       []int
	}{
		{"aa", "a", 2, []int{1, 1}},
		{"aaa", "aa", 2, []int{1, 1}}, // overlapping
		{"x\ny\nx\n", "x\n", 2, []int{1, 3}},
		{"x\r\ny\r\nx\r\n", "x\n", 2, []int{1, 3}},
		{strings.Repeat("k\n", 12), "k", 12, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"a", "b", 0, nil},
		{"", "b", 0, nil},
		{"ab", "AB", 0, nil},
	} {
		got, err := edit.Apply(tt.src, tt.search, "z", false)
		m := (*edit.MatchError)(nil)
		if !errors.As(err, &m) || m.Count != tt.count || !slices.Equal(m.Lines, tt.lines) || got.Text != "" {
			t.Errorf("Apply(%q, %q) = %q, %#v; want count %d, lines %v", tt.src, tt.search, got.Text, err, tt.count, tt.lines)
		}
	}
}

func TestClosest(t *testing.T) {
	src := "package a\n\nfunc f() {\n\tif x {\n\t\treturn  y\n\t}\n}\n\nfunc last() {}"
	for _, tt := range []struct {
		name, search string
		line, column int
		have, want   string
	}{
		{"indentation", "    if x {\n        return  y\n", 4, 1, "\tif x {\n", "    if x {\n"},
		{"indentation of a later line", "if x {\nreturn  y\n", 5, 1, "\t\treturn  y\n", "return  y\n"},
		{"white space inside", "\tif x {\n\t\treturn y\n\t}", 5, 10, "\t\treturn  y\n", "\t\treturn y\n"},
		{"a slip", "\t\tretrun  y", 5, 6, "\t\treturn  y\n", "\t\tretrun  y"},
		{"a slip, begun inside the line", "retrun  y", 5, 6, "\t\treturn  y\n", "\t\tretrun  y"},
		{"a line too few", "func f() {\n\t\treturn  y\n", 4, 2, "\tif x {\n", "\t\treturn  y\n"},
		{"white space at the end", "func f() { \n\tif x {", 3, 11, "func f() {\n", "func f() { \n"},
		{"newline after the last line", "func last() {}\n", 9, 15, "func last() {}", "func last() {}\n"},
		{"CRLF in an LF text", "func f() {\r\n\tif x {\r\n", 3, 11, "func f() {\n", "func f() {\r\n"},
	} {
		_, err := edit.Apply(src, tt.search, "", false)
		m := (*edit.MatchError)(nil)
		if !errors.As(err, &m) || m.Close == nil {
			t.Errorf("%s: Apply(…, %q) = %v, want a MatchError with the closest text", tt.name, tt.search, err)
			continue
		}
		c := *m.Close
		if c.Line != tt.line || c.Column != tt.column || c.Have != tt.have || c.Want != tt.want {
			t.Errorf("%s: closest to %q = %+v, want line %d column %d %q %q", tt.name, tt.search, c, tt.line, tt.column, tt.have, tt.want)
		}
	}
	m := (*edit.MatchError)(nil)
	if _, err := edit.Apply(src, "nothing of the kind", "", false); !errors.As(err, &m) || m.Close != nil {
		t.Errorf("closest to something else altogether = %+v, want none", m.Close)
	}
}

// The text outside the match is the same bytes as before, and the match is replaced.
func FuzzApply(f *testing.F) {
	f.Add("a\nb\n", "b", "c")
	f.Add("aa", "a", "b")  // ambiguous: must be refused
	f.Add("aaa", "aa", "") // so must this: the matches overlap
	f.Add("a\r\nb\r\n", "a\nb", "x\ny")
	f.Add("\r\n\r\r\n", "\n\r", "")
	f.Add("a\nb\r\nc", "\n", "")
	f.Fuzz(func(t *testing.T, src, search, replace string) {
		got, err := edit.Apply(src, search, replace, false)
		if m := (*edit.MatchError)(nil); errors.Is(err, edit.ErrEmpty) || errors.As(err, &m) && m.Count != 1 {
			if got.Text != "" {
				t.Fatalf("Apply(%q, %q, %q) = %q with %v", src, search, replace, got.Text, err)
			}
			return
		} else if err != nil {
			t.Fatalf("Apply(%q, %q, %q) = %v, want an edit or a MatchError", src, search, replace, err)
		}
		before, after, ok := strings.Cut(src, search)
		if !strings.Contains(src, "\r\n") {
			if !ok || got.Text != before+replace+after {
				t.Fatalf("Apply(%q, %q, %q) = %q: bytes outside the match changed", src, search, replace, got.Text)
			}
			return
		}
		o, n := got.Old[0], got.New[0]
		if got.Text[:n.Start] != src[:o.Start] || got.Text[n.End:] != src[o.End:] {
			t.Fatalf("Apply(%q, %q, %q) = %q: bytes outside the match changed", src, search, replace, got.Text)
		}
		if lf(src[o.Start:o.End]) != lf(search) || lf(got.Text[n.Start:n.End]) != lf(replace) {
			t.Fatalf("Apply(%q, %q, %q) replaced %q by %q", src, search, replace, src[o.Start:o.End], got.Text[n.Start:n.End])
		}
	})
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func TestApplyAll(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		src, replace := text.Draw(t, "src"), text.Draw(t, "replace")
		search := rapid.StringOfN(rapid.SampledFrom([]rune("ab \n")), 1, 3, -1).Draw(t, "search")
		if want := strings.ReplaceAll(src, search, replace); strings.Contains(src, search) {
			got, err := edit.Apply(src, search, replace, true)
			if got.Text != want || err != nil || len(got.Old) != strings.Count(src, search) {
				t.Fatalf("Apply(%q, %q, %q, all) = %+v, %v; want %q", src, search, replace, got, err, want)
			}
		}
		// With CRLF throughout it is the same edit of the same lines.
		crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
		got, err := edit.Apply(crlf(src), search, replace, true)
		if strings.Contains(src, search) && strings.Contains(src, "\n") && (err != nil || got.Text != crlf(strings.ReplaceAll(src, search, replace))) {
			t.Fatalf("Apply(%q, %q, %q, all) = %+v, %v; want the CRLF form", crlf(src), search, replace, got, err)
		}
	})
}

type edits []string

func (e *edits) Edited(name, before, after string) { *e = append(*e, name, before, after) }

func TestSearchReplace(t *testing.T) {
	var long strings.Builder
	for i := 1; i <= 237; i++ {
		fmt.Fprintf(&long, "key%d = %d\n", i, i)
	}
	ws := toolstest.Workspace(t, map[string]string{"conf": long.String(), "two": "x\nx\n", "bin": "\x00"})
	if err := os.Chmod(filepath.Join(ws.Path, "conf"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen edits
	tool := edit.SearchReplace(&seen)

	got := toolstest.Call(t, tool, ws, args{"path": "conf", "search": "key120 = 120", "replace": "key120 = 'ein $wert'"})
	want := "replaced 1 occurrence in conf\n 117| key117 = 117\n 118| key118 = 118\n 119| key119 = 119\n 120| key120 = 'ein $wert'\n 121| key121 = 121\n 122| key122 = 122\n 123| key123 = 123\n"
	if got.IsError || got.Text != want {
		t.Errorf("search_replace = %+v, want %q", got, want)
	}
	after := strings.Replace(long.String(), "key120 = 120", "key120 = 'ein $wert'", 1)
	if now := toolstest.Contents(ws, "conf"); now != after {
		t.Errorf("the file differs in more than the one line: %q", now)
	}
	if info, err := os.Stat(filepath.Join(ws.Path, "conf")); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode = %v %v, want 0600 as before", info, err)
	}
	if !slices.Equal(seen, edits{"conf", long.String(), after}) {
		t.Errorf("the observer was told %q", seen)
	}

	for _, tt := range []struct {
		in   args
		want string
	}{
		{args{"path": "conf", "search": "key1", "replace": "z"}, "conf: search text found 111 times, in lines 1, 10, 11, 12, 13, 14, 15, 16, 17, 18, …; nothing was changed\nhint: "},
		{args{"path": "conf", "search": "key7  = 7\n", "replace": "z"}, "line 7, column 6 (white space shown as · → ␍ ␊)\n  file:   key7·=·7␊\n  search: key7··=·7␊\nhint: "},
		{args{"path": "conf", "search": "nothing", "replace": "z"}, "not found, nor anything like it; nothing was changed\nhint: "},
		{args{"path": "conf", "search": "", "replace": "z"}, "search is empty\nhint: "},
		{args{"path": "conf", "search": "key9 =", "replace": "key9 ="}, "nothing would change\nhint: "},
		{args{"path": "bin", "search": "a", "replace": "z"}, "binary file"},
		{args{"path": "konf", "search": "a", "replace": "z"}, "did you mean conf?"},
		{args{"path": "../conf", "search": "a", "replace": "z"}, "outside"},
		{args{"path": "conf", "search": "a"}, "replace is missing"},
	} {
		got := toolstest.Call(t, tool, ws, tt.in)
		if !got.IsError || !strings.Contains(got.Text, tt.want) {
			t.Errorf("search_replace(%v) = %+v, want an error with %q", tt.in, got, tt.want)
		}
	}
	if got := toolstest.Call(t, tool, toolstest.ReadOnly(t, ws), args{"path": "conf", "search": "key7 = 7", "replace": ""}); !got.IsError {
		t.Errorf("search_replace where nothing may be written = %+v, want a failed result", got)
	}
	if now := toolstest.Contents(ws, "conf"); now != after || len(seen) != 3 {
		t.Errorf("a failed edit changed the file or told the observer: %q %q", now, seen)
	}
}

func TestReportOfMany(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"f": strings.Repeat("same\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", 2) + "same", "big": strings.Repeat("same\n", 5000)})
	got := toolstest.Call(t, edit.SearchReplace(nil), ws, args{"path": "f", "search": "same", "replace": "new", "all": true})
	want := "replaced 3 occurrences in f\n   1| new\n   2| 1\n   3| 2\n   4| 3\n   …\n   8| 7\n   9| 8\n  10| 9\n  11| new\n  12| 1\n  13| 2\n  14| 3\n   …\n  18| 7\n  19| 8\n  20| 9\n  21| new\n"
	if got.Text != want {
		t.Errorf("search_replace all = %q, want %q", got.Text, want)
	}
	got = toolstest.Call(t, edit.SearchReplace(nil), ws, args{"path": "big", "search": "same", "replace": "new", "all": true})
	if len(got.Text) > 10_000 || !strings.Contains(got.Text, "of 5000; read_file shows the rest]") {
		t.Errorf("search_replace of 5000 places: %d bytes, want at most 10000 with a notice: …%s", len(got.Text), got.Text[max(0, len(got.Text)-200):])
	}
}

func TestPreview(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"f": "a\nb\n"})
	p := edit.SearchReplace(nil).(tools.Previewer)
	got, err := p.Preview(t.Context(), ws, []byte(`{"path": "f", "search": "b", "replace": "c"}`))
	if want := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"; got != want || err != nil {
		t.Errorf("Preview = %q, %v; want %q", got, err, want)
	}
	if got, err := p.Preview(t.Context(), ws, []byte(`{"path": "f", "search": "z", "replace": "c"}`)); err == nil {
		t.Errorf("Preview of an edit that fails = %q, want its error", got)
	}
	if now := toolstest.Contents(ws, "f"); now != "a\nb\n" {
		t.Errorf("Preview changed the file to %q", now)
	}
}

func BenchmarkApply(b *testing.B) {
	src := strings.Repeat("some line of a file\n", 5000) + "the one\n" + strings.Repeat("some line of a file\n", 5000)
	for b.Loop() {
		if _, err := edit.Apply(src, "the one\n", "another\n", false); err != nil {
			b.Fatal(err)
		}
	}
}
