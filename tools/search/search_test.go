package search_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"skein/tools"
	"skein/tools/search"
	"skein/tools/toolstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type args = toolstest.Args

// need skips a test for want of a program, and fails it where everything is required.
func need(t *testing.T, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("SKEIN_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestSpecs(t *testing.T) {
	for _, tool := range []tools.Tool{search.List(), search.Glob(), search.Grep()} {
		toolstest.Spec(t, tool)
	}
}

// project is a workspace with a bit of everything.
func project(t *testing.T) tools.Workspace {
	ws := toolstest.Workspace(t, map[string]string{
		"README.md":         "# Demo\nretry is decided in net\n",
		"main.go":           "package main\n\nfunc main() {\n\tretry()\n}\n",
		"net/retry.go":      "package net\n\n// Retry tries again.\nfunc Retry() {}\n",
		"net/retry_test.go": "package net\n",
		"net/deep/a/b.txt":  "down here\n",
		"net.txt":           "between net/ and others\n",
		".gitignore":        "*.log\n/build/\n!keep.log\n",
		".hidden/x":         "retry hidden\n",
		"a.log":             "retry\n",
		"keep.log":          "retry kept\n",
		"build/out.go":      "retry built\n",
		"vendor/.ignore":    "*\n",
		"vendor/v.go":       "retry vendored\n",
		"blob":              "retry\x00\n",
		"latin1":            "caf\xe9\n",
	})
	if err := os.Symlink("net", filepath.Join(ws.Path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(ws.Path, "out")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/config", ".skein/journal", "net/.git/retry"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws.Path, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(ws.Path, name), []byte("retry in secret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ws
}

func TestTools(t *testing.T) {
	ws := project(t)
	for _, tt := range []struct {
		name string
		tool tools.Tool
		in   args
		want string // the whole text, or for errors a part of it
		fail bool
	}{
		{"list", search.List(), args{}, ".gitignore\n.hidden/\n.hidden/x\nREADME.md\nblob\nkeep.log\nlatin1\nlink -> net\nmain.go\nnet.txt\nnet/\nnet/deep/\nnet/retry.go\nnet/retry_test.go\nout -> /etc\nvendor/\n", false},
		{"list one level", search.List(), args{"depth": 1, "path": "net"}, "net/deep/\nnet/retry.go\nnet/retry_test.go\n", false},
		{"list deep", search.List(), args{"depth": 9, "path": ws.Path + "/net/deep"}, "net/deep/a/\nnet/deep/a/b.txt\n", false},
		{"list what is ignored, by name", search.List(), args{"path": "build"}, "build/out.go\n", false},
		{"list where all is ignored", search.List(), args{"path": "vendor"}, "no files in vendor\n", false},
		{"list a file", search.List(), args{"path": "main.go"}, "main.go: is no directory\nhint: use read_file", true},
		{"list nothing", search.List(), args{"path": "nett"}, "nett: no such file", true},
		{"list outside", search.List(), args{"path": ".."}, "outside the workspace", true},
		{"list through a link to outside", search.List(), args{"path": "out"}, "out", true},
		{"list .git", search.List(), args{"path": ".git"}, ".git", true},
		{"list negative", search.List(), args{"depth": -1}, "negative", true},

		{"glob by name", search.Glob(), args{"pattern": "*.go"}, "main.go\nnet/retry.go\nnet/retry_test.go\n", false},
		{"glob by path", search.Glob(), args{"pattern": "net/*.go"}, "net/retry.go\nnet/retry_test.go\n", false},
		{"glob below a folder", search.Glob(), args{"pattern": "**/*.txt", "path": "net"}, "net/deep/a/b.txt\n", false},
		{"glob a path below a folder", search.Glob(), args{"pattern": "deep/*/b.txt", "path": "net"}, "net/deep/a/b.txt\n", false},
		{"glob braces", search.Glob(), args{"pattern": "*.{md,txt}"}, "README.md\nnet.txt\nnet/deep/a/b.txt\n", false},
		{"glob absolute", search.Glob(), args{"pattern": ws.Path + "/net/**"}, "net/deep/a/b.txt\nnet/retry.go\nnet/retry_test.go\n", false},
		{"glob absolute, one level", search.Glob(), args{"pattern": ws.Path + "/*.go", "path": "."}, "main.go\n", false},
		{"glob ./", search.Glob(), args{"pattern": "./*.md"}, "README.md\n", false},
		{"glob a link", search.Glob(), args{"pattern": "link*"}, "link\n", false},
		{"glob nothing", search.Glob(), args{"pattern": "*.rs"}, "no file matches\n", false},
		{"glob bad", search.Glob(), args{"pattern": "src/[ab"}, "bad pattern at character 5\nhint: ", true},
		{"glob up", search.Glob(), args{"pattern": "../*"}, "below the workspace", true},
		{"glob outside", search.Glob(), args{"pattern": "/etc/*"}, "outside the workspace", true},

		{"grep", search.Grep(), args{"pattern": "[Rr]etry"}, ".hidden/x:1:retry hidden\nREADME.md:2:retry is decided in net\nkeep.log:1:retry kept\nmain.go:4:\tretry()\nnet/retry.go:3:// Retry tries again.\nnet/retry.go:4:func Retry() {}\n", false},
		{"grep a folder", search.Grep(), args{"pattern": "(?i)RETRY", "path": "net"}, "net/retry.go:3:// Retry tries again.\nnet/retry.go:4:func Retry() {}\n", false},
		{"grep a file that is ignored", search.Grep(), args{"pattern": "retry", "path": "a.log"}, "a.log:1:retry\n", false},
		{"grep included", search.Grep(), args{"pattern": "retry", "include": "*.md"}, "README.md:2:retry is decided in net\n", false},
		{"grep included by path", search.Grep(), args{"pattern": "package", "include": "net/*.go"}, "net/retry.go:1:package net\nnet/retry_test.go:1:package net\n", false},
		{"grep ends of line", search.Grep(), args{"pattern": "^}$"}, "main.go:5:}\n", false},
		{"grep context", search.Grep(), args{"pattern": "retry", "path": "main.go", "context": 1}, "main.go-3-func main() {\nmain.go:4:\tretry()\nmain.go-5-}\n", false},
		{"grep never across lines", search.Grep(), args{"pattern": `main\s+func`}, "no match in 10 text files\n", false},
		{"grep nothing", search.Grep(), args{"pattern": "absent", "path": "net"}, "no match in 3 text files\n", false},
		{"grep bad", search.Grep(), args{"pattern": "a(b"}, "bad pattern at character 2: missing closing ): `a(b`\nhint: ", true},
		{"grep look-ahead", search.Grep(), args{"pattern": "ab(?=c)"}, "bad pattern at character 3: invalid or unsupported Perl syntax: `(?=`\nhint: patterns are RE2", true},
		{"grep a byte that is no UTF-8", search.Grep(), args{"pattern": "caf\uFFFD$"}, "latin1:1:caf\uFFFD\n", false},
		{"grep much context", search.Grep(), args{"pattern": "a", "context": 21}, "context must be 0 to 20", true},
		{"grep nowhere", search.Grep(), args{"pattern": "a", "path": "nowhere"}, "no such file", true},
		{"grep bad include", search.Grep(), args{"pattern": "a", "include": "{a"}, "bad pattern at character 1", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := toolstest.Call(t, tt.tool, ws, tt.in)
			if got.IsError != tt.fail || !tt.fail && got.Text != tt.want || !strings.Contains(got.Text, tt.want) {
				t.Errorf("%s(%v) = %v %s\nwant %v %s", tt.tool.Spec().Name, tt.in, got.IsError, got.Text, tt.fail, tt.want)
			}
		})
	}
}

func TestContextOfNeighbours(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&b, "line %02d\n", i)
	}
	ws := toolstest.Workspace(t, map[string]string{"f": b.String()})
	got := toolstest.Call(t, search.Grep(), ws, args{"pattern": "0[147]|11|30", "context": 2}).Text
	want := "f:1:line 01\nf-2-line 02\nf-3-line 03\nf:4:line 04\nf-5-line 05\nf-6-line 06\nf:7:line 07\nf-8-line 08\nf-9-line 09\nf-10-line 10\nf:11:line 11\nf-12-line 12\nf-13-line 13\n--\nf-28-line 28\nf-29-line 29\nf:30:line 30\n"
	if got != want {
		t.Errorf("grep = %s\nwant %s", got, want)
	}
}

// However much there is to find, an answer stays within its limits and says how to narrow it;
// narrowed, it is complete. (The wide grep: 25,247 bytes if it had no limit.)
func TestWideGrep(t *testing.T) {
	files := map[string]string{"src/answer.go": "token: the one\n"}
	for i := range 400 {
		files[fmt.Sprintf("gen/f%03d.go", i)] = "token: " + strings.Repeat("x", 38) + "\n"
	}
	ws := toolstest.Workspace(t, files)
	got := toolstest.Call(t, search.Grep(), ws, args{"pattern": "token"}).Text
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(got) > 10_000 || len(lines) != 101 || lines[100] != "[stopped at 100 hits, there are more; narrow it with path, include or a longer pattern]" {
		t.Errorf("grep = %d bytes, %d lines, last %q; want 100 hits and a notice", len(got), len(lines), lines[len(lines)-1])
	}
	if got := toolstest.Call(t, search.Grep(), ws, args{"pattern": "token", "path": "src"}).Text; got != "src/answer.go:1:token: the one\n" {
		t.Errorf("narrowed grep = %q", got)
	}
	if got := toolstest.Call(t, search.Glob(), ws, args{"pattern": "*.go"}).Text; strings.Count(got, "\n") != 101 || !strings.HasSuffix(got, "narrow it with path or a longer pattern]\n") {
		t.Errorf("glob of 401 files = %q", got)
	}
	long := strings.Repeat("é", 3000) + "token" + strings.Repeat("é", 3000) + "\n"
	ws = toolstest.Workspace(t, map[string]string{"min.js": strings.Repeat(long, 90)})
	got = toolstest.Call(t, search.Grep(), ws, args{"pattern": "token"}).Text
	if len(got) > 10_000 || !utf8.ValidString(got) || !strings.Contains(got, "étokené") || !strings.Contains(got, "[stopped at 10000 bytes") {
		t.Errorf("grep of long lines = %d bytes, %q…", len(got), got[:300])
	}
}

func TestExactlyTheLimitIsComplete(t *testing.T) {
	ws := toolstest.Workspace(t, map[string]string{"f": strings.Repeat("x\n", 100)})
	if got := toolstest.Call(t, search.Grep(), ws, args{"pattern": "x"}).Text; strings.Contains(got, "[") || strings.Count(got, "\n") != 100 {
		t.Errorf("grep with 100 hits = %q, want them without a notice", got)
	}
}

// A file name cannot pass for a line of ours.
func TestHostileNames(t *testing.T) {
	ws := toolstest.Workspace(t, nil)
	if err := os.WriteFile(filepath.Join(ws.Path, "a\nb:1:x"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := toolstest.Call(t, search.Glob(), ws, args{"pattern": "*"}).Text; got != "\"a\\nb:1:x\"\n" {
		t.Errorf("glob = %q, want the name quoted", got)
	}
}

func TestCancel(t *testing.T) {
	ws := project(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tool := range []tools.Tool{search.List(), search.Glob(), search.Grep()} {
		_, err := tool.Run(ctx, ws, []byte(`{"pattern": "x"}`))
		if tool.Spec().Name == "list_files" {
			_, err = tool.Run(ctx, ws, []byte(`{}`))
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s after cancel = %v, want context.Canceled", tool.Spec().Name, err)
		}
	}
}

// Searching a text as a whole finds what searching each of its lines would find.
func TestGrepIsByLine(t *testing.T) {
	pattern := rapid.StringOfN(rapid.SampledFrom([]rune(`ab.*+?|^$[]()\nsWSdb-A `+"\n")), 1, 8, -1)
	text := rapid.StringOfN(rapid.SampledFrom([]rune("aab  \n\n\tAn1é")), 1, 25, -1)
	tool := search.Grep()
	rapid.Check(t, func(rt *rapid.T) {
		p, content := pattern.Draw(rt, "pattern"), text.Draw(rt, "text")
		re, err := regexp.Compile(p)
		if err != nil {
			rt.Skip("no pattern")
		}
		ws := toolstest.Workspace(t, map[string]string{"f": content})
		got := toolstest.Call(t, tool, ws, args{"pattern": p}).Text
		var want strings.Builder
		for i, line := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
			if re.MatchString(line) {
				fmt.Fprintf(&want, "f:%d:%s\n", i+1, line)
			}
		}
		if want.Len() == 0 {
			want.WriteString("no match in 1 text files\n")
		}
		if got != want.String() {
			rt.Fatalf("grep %q in %q = %q, want %q", p, content, got, want.String())
		}
	})
}

// What glob lists of a tree with ignore files at several levels is what git lists.
func TestWalkAsGit(t *testing.T) {
	_, err := exec.LookPath("git")
	need(t, err == nil, "needs git")
	ws := toolstest.Workspace(t, map[string]string{
		".gitignore": "*.o\n/top\nlogs/\n**/cache/*\n!**/cache/keep\nsecret*\n", "a.o": "", "a.c": "", "top": "", "sub/top": "", "logs/x": "", "sub/logs/y": "",
		"sub/.gitignore": "!a.o\n/only\n*.tmp\n", "sub/a.o": "", "sub/b.o": "", "sub/only": "", "sub/deep/only": "", "sub/deep/x.tmp": "",
		"sub/deep/.gitignore": "!x.tmp\n!secret.txt\n", "sub/deep/y.tmp": "", "sub/deep/secret.txt": "", "cache/a": "", "cache/keep": "", "sub/cache/a": "", "sub/cache/keep": "",
		"back/.gitignore": "*\n!.gitignore\n!*/\n!*.go\n", "back/a.go": "", "back/a.txt": "", "back/d/e/f.go": "", "back/d/e/f.txt": "", "back.go": "", "back-1": "",
	})
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = ws.Path
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	want := strings.Split(strings.TrimSpace(git("ls-files", "-o", "--exclude-standard")), "\n")
	got := strings.Split(strings.TrimSpace(toolstest.Call(t, search.Glob(), ws, args{"pattern": "**"}).Text), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("glob ** = %q\nwant %q", got, want)
	}
}

func BenchmarkGrep(b *testing.B) {
	files := map[string]string{}
	for i := range 500 {
		files[fmt.Sprintf("d%d/f%d.go", i%20, i)] = strings.Repeat("func (t *T) Name() string { return t.name }\n", 200)
	}
	ws := toolstest.Workspace(b, files)
	for name, pattern := range map[string]string{"literal": "ReadFrame", "class": `[a-z]+_[0-9]+_[a-z]+`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				toolstest.Call(b, search.Grep(), ws, args{"pattern": pattern})
			}
		})
	}
}
