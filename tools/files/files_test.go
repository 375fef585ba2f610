package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"skein/tools"
	"skein/tools/files"
	"skein/tools/toolstest"
)

type args = toolstest.Args

func TestSpecs(t *testing.T) {
	toolstest.Spec(t, files.Read(nil))
	toolstest.Spec(t, files.Write(nil))
}

func TestRead(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{
		"a.txt":       "one\ntwo\nthree\n",
		"open.txt":    "no newline at the end",
		"empty":       "",
		"crlf.txt":    "\uFEFFone\r\ntwo\r\n",
		"dir/b.go":    "package b\n",
		"picture":     "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff",
		"drawing.svg": "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n",
		"binary":      "ab\x00c",
		"latin1":      "caf\xe9\n",
	})
	if err := syscall.Mkfifo(filepath.Join(ws.Path, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(ws.Path, "passwd")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		in   args
		want string // the whole text, or for errors parts of it, separated by |
		fail bool
	}{
		{"whole", args{"path": "a.txt"}, "   1| one\n   2| two\n   3| three\n", false},
		{"absolute", args{"path": ws.Path + "/a.txt", "max_lines": 3}, "   1| one\n   2| two\n   3| three\n", false},
		{"plain", args{"path": "./dir/../a.txt", "line_numbers": false}, "one\ntwo\nthree\n", false},
		{"some lines", args{"path": "a.txt", "start_line": 2, "max_lines": 1}, "   2| two\n[lines 2-2 of 3; go on with start_line 3]\n", false},
		{"last lines", args{"path": "a.txt", "start_line": 2}, "   2| two\n   3| three\n[lines 2-3 of 3]\n", false},
		{"no last newline", args{"path": "open.txt"}, "   1| no newline at the end\n", false},
		{"empty", args{"path": "empty"}, "[the file is empty]\n", false},
		{"CRLF and BOM", args{"path": "crlf.txt"}, "   1| one\n   2| two\n[line endings are CRLF]\n", false},
		{"svg is text", args{"path": "drawing.svg", "line_numbers": false}, "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n", false},
		{"past the end", args{"path": "a.txt", "start_line": 4}, "start_line 4|3 lines", true},
		{"negative", args{"path": "a.txt", "start_line": -1}, "negative", true},
		{"directory", args{"path": "dir"}, "dir: is a directory|list_files", true},
		{"missing, same name elsewhere", args{"path": "b.go"}, "b.go: no such file|did you mean dir/b.go?", true},
		{"missing, similar name", args{"path": "A.text"}, "no such file|did you mean a.txt?", true},
		{"missing below a file", args{"path": "a.txt/x"}, "a.txt/x|hint: ", true},
		{"missing", args{"path": "nothing/like/it"}, "no such file|list_files", true},
		{"image", args{"path": "picture"}, "image/png, 17 bytes", true},
		{"binary", args{"path": "binary"}, "binary file|NUL at byte 2", true},
		{"no UTF-8", args{"path": "latin1"}, "not UTF-8 text (byte 0xE9 at 3 of 5)|iconv", true},
		{"outside", args{"path": "../x"}, "../x: outside the workspace|relative", true},
		{"outside, absolute", args{"path": "/etc/passwd"}, "/etc/passwd: outside the workspace", true},
		{"outside, same beginning", args{"path": ws.Path + "x/a.txt"}, "outside the workspace", true},
		{"link to outside", args{"path": "passwd"}, "passwd", true},
		{"FIFO", args{"path": "fifo"}, "fifo", true},
		{"empty path", args{"path": ""}, "path is empty", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := toolstest.Call(t, files.Read(nil), ws, tt.in)
			if got.IsError != tt.fail {
				t.Fatalf("read_file(%v) = %+v, want IsError %v", tt.in, got, tt.fail)
			}
			if !tt.fail && got.Text != tt.want {
				t.Errorf("read_file(%v) = %q, want %q", tt.in, got.Text, tt.want)
			}
			for part := range strings.SplitSeq(tt.want, "|") {
				if tt.fail && !strings.Contains(got.Text, part) {
					t.Errorf("read_file(%v) = %q, want it to hold %q", tt.in, got.Text, part)
				}
			}
		})
	}
}

// Whatever the file, following the notices shows every line once and in order, and no answer
// is too long or ends inside a character.
func TestReadPages(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		b.WriteString(strings.Repeat("é", i%37) + "\n")
	}
	ws := toolstest.Workspace(t, map[string]string{"long": b.String()})
	var got strings.Builder
	next, pages := 1, 0
	for next > 0 {
		res := toolstest.Call(t, files.Read(nil), ws, args{"path": "long", "start_line": next, "line_numbers": false})
		if res.IsError || len(res.Text) > 10_000 || !utf8.ValidString(res.Text) {
			t.Fatalf("page from %d: %d bytes, IsError %v", next, len(res.Text), res.IsError)
		}
		lines, notice, _ := strings.Cut(res.Text, "[")
		got.WriteString(lines)
		_, after, more := strings.Cut(notice, "start_line ")
		next = 0
		if more {
			for _, r := range strings.TrimSuffix(after, "]\n") {
				next = next*10 + int(r-'0')
			}
		}
		if pages++; pages > 100 {
			t.Fatal("no end after 100 pages")
		}
	}
	if got.String() != b.String() {
		t.Errorf("%d pages hold %d bytes, want the file's %d", pages, got.Len(), b.Len())
	}
}

func TestReadCutsALongLine(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"min.js": "a" + strings.Repeat("é", 6000) + "\nend\n"})
	got := toolstest.Call(t, files.Read(nil), ws, args{"path": "min.js"}).Text
	for _, want := range []string{"[line 1 has 12001 bytes, cut after ", "sed -n 1p", "[lines 1-1 of 2; go on with start_line 2]"} {
		if !strings.Contains(got, want) {
			t.Errorf("read_file of a long line holds no %q: %q", want, got[len(got)-300:])
		}
	}
	if len(got) > 10_000 || !utf8.ValidString(got) {
		t.Errorf("read_file of a long line: %d bytes, valid UTF-8 %v; want at most 10000, true", len(got), utf8.ValidString(got))
	}
}

func TestWrite(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"dir/run.sh": "old\n"})
	script := filepath.Join(ws.Path, "dir/run.sh")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(script, filepath.Join(ws.Path, "hard")); err != nil {
		t.Fatal(err)
	}
	rec := &files.Record{}
	read, write := files.Read(rec), files.Write(rec)

	if got := toolstest.Call(t, write, ws, args{"path": "new/deep/a.txt", "content": "x\ny"}); got.IsError || got.Text != "created new/deep/a.txt: 2 lines, 3 bytes\n" {
		t.Errorf("write_file of a new file = %+v", got)
	}
	toolstest.Call(t, read, ws, args{"path": "dir/run.sh"})
	rec.Next()
	if got := toolstest.Call(t, write, ws, args{"path": "dir/run.sh", "content": "$a `b` \"c\" 'd' \\n\n"}); got.IsError {
		t.Fatalf("write_file of a file that was read = %+v", got)
	}
	if got := toolstest.Contents(ws, "dir/run.sh"); got != "$a `b` \"c\" 'd' \\n\n" {
		t.Errorf("content = %q, want it byte for byte", got)
	}
	if info, err := os.Stat(script); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode after write_file = %v %v, want 0755 as before", info, err)
	}
	if got := toolstest.Contents(ws, "hard"); got != "old\n" {
		t.Errorf("the other name of a hard link = %q, want it as it was", got)
	}
	for _, path := range []string{"dir", "new/", "..", ".", ".git/hooks/pre-commit"} {
		if got := toolstest.Call(t, write, ws, args{"path": path, "content": ""}); !got.IsError {
			t.Errorf("write_file to %s = %+v, want a failed result", path, got)
		}
	}
	if got := toolstest.Call(t, write, toolstest.ReadOnly(t, ws), args{"path": "b", "content": ""}); !got.IsError || toolstest.Contents(ws, "b") == "" {
		t.Errorf("write_file where nothing may be written = %+v, want a failed result", got)
	}
}

func TestWriteGuard(t *testing.T) {
	big := strings.Repeat("a line of the file\n", 1000)
	for _, tt := range []struct {
		name string
		do   func(*files.Record, func(string, args) tools.Result, tools.Workspace)
		want string // in the refusal; "" = allowed
	}{
		{"never read", func(*files.Record, func(string, args) tools.Result, tools.Workspace) {}, "you have not read it"},
		{"read in the same reply", func(_ *files.Record, call func(string, args) tools.Result, _ tools.Workspace) {
			call("read", args{"path": "f"})
		}, "same reply"},
		{"read before", func(r *files.Record, call func(string, args) tools.Result, _ tools.Workspace) {
			call("read", args{"path": "f"})
			r.Next()
		}, ""},
		{"read long before", func(r *files.Record, call func(string, args) tools.Result, _ tools.Workspace) {
			call("read", args{"path": "f"})
			r.Next()
			r.Next()
		}, ""},
		{"changed since", func(r *files.Record, call func(string, args) tools.Result, ws tools.Workspace) {
			call("read", args{"path": "f"})
			r.Next()
			_ = ws.FS.WriteFile("f", []byte("the user's\n"), 0o644)
		}, "has changed since"},
		{"changed since, new content just read", func(r *files.Record, call func(string, args) tools.Result, ws tools.Workspace) {
			call("read", args{"path": "f"})
			r.Next()
			_ = ws.FS.WriteFile("f", []byte("the user's\n"), 0o644)
			call("read", args{"path": "f"})
		}, "same reply"},
		{"read in part", func(r *files.Record, call func(string, args) tools.Result, _ tools.Workspace) {
			call("read", args{"path": "f", "max_lines": 10})
			r.Next()
		}, "only in part (190 of 19000 bytes)"},
		{"read in parts", func(r *files.Record, call func(string, args) tools.Result, _ tools.Workspace) {
			call("read", args{"path": "f", "start_line": 301, "max_lines": 400})
			r.Next()
			call("read", args{"path": "f", "start_line": 650})
			call("read", args{"path": "f", "max_lines": 300})
			r.Next()
		}, ""},
		{"written by itself", func(_ *files.Record, call func(string, args) tools.Result, ws tools.Workspace) {
			call("write", args{"path": "g", "content": "x"})
			b := []byte(toolstest.Contents(ws, "g"))
			_ = ws.FS.WriteFile("f", b, 0o644)
		}, "you have not read it"},
		{"edited after it was read", func(r *files.Record, call func(string, args) tools.Result, ws tools.Workspace) {
			call("read", args{"path": "f"})
			call("read", args{"path": "f", "start_line": 300})
			call("read", args{"path": "f", "start_line": 600})
			call("read", args{"path": "f", "start_line": 950})
			r.Next()
			_ = ws.FS.WriteFile("f", []byte("edited\n"), 0o644)
			r.Edited("f", big, "edited\n")
		}, ""},
		{"edited unread", func(r *files.Record, _ func(string, args) tools.Result, ws tools.Workspace) {
			_ = ws.FS.WriteFile("f", []byte("edited\n"), 0o644)
			r.Edited("f", big, "edited\n")
		}, "you have not read it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			content := big
			if strings.HasPrefix(tt.name, "read before") || strings.HasPrefix(tt.name, "read long") {
				content = "short\n"
			}
			ws := toolstest.Workspace(t, map[string]string{"f": content})
			rec := &files.Record{}
			byName := map[string]tools.Tool{"read": files.Read(rec), "write": files.Write(rec)}
			tt.do(rec, func(tool string, in args) tools.Result { return toolstest.Call(t, byName[tool], ws, in) }, ws)
			before := toolstest.Contents(ws, "f")
			got := toolstest.Call(t, byName["write"], ws, args{"path": "f", "content": "new\n"})
			if tt.want == "" {
				if got.IsError || toolstest.Contents(ws, "f") != "new\n" {
					t.Errorf("write_file = %+v, want it to write", got)
				}
				return
			}
			if !got.IsError || !strings.Contains(got.Text, tt.want) || !strings.Contains(got.Text, "\nhint: ") {
				t.Errorf("write_file = %+v, want a refusal with %q and a hint", got, tt.want)
			}
			if now := toolstest.Contents(ws, "f"); now != before {
				t.Errorf("refused write_file changed the file to %q", now)
			}
			if got := toolstest.Call(t, files.Write(nil), ws, args{"path": "f", "content": "new\n"}); got.IsError {
				t.Errorf("write_file with the guard off = %+v, want it to write", got)
			}
		})
	}
}

func TestWritePreview(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"f": "a\nb\n"})
	p := files.Write(nil).(tools.Previewer)
	for _, tt := range []struct{ args, want string }{
		{`{"path": "f", "content": "a\nc\n"}`, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{`{"path": "f", "content": "a\nb\n"}`, "f is written as it is"},
		{`{"path": "n/g\u001b", "content": ""}`, `"n/g\x1b" is created empty`}, // it has no line
	} {
		if got, err := p.Preview(t.Context(), ws, []byte(tt.args)); got != tt.want || err != nil {
			t.Errorf("Preview of %s = %q, %v; want %q", tt.args, got, err, tt.want)
		}
	}
	if got, err := files.Write(&files.Record{}).(tools.Previewer).Preview(t.Context(), ws, []byte(`{"path": "f", "content": ""}`)); err == nil {
		t.Errorf("Preview of a write that would be refused = %q, want the refusal", got)
	}
	if toolstest.Contents(ws, "f") != "a\nb\n" {
		t.Error("Preview changed the file")
	}
}
