package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"skein/sandbox"
	"skein/tools"
	"skein/tools/shell"
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

// workspace runs real commands, without a box: what a box holds is proved where it is made.
func workspace(t *testing.T) tools.Workspace {
	_, err := exec.LookPath("bash")
	need(t, err == nil, "needs bash")
	ws := toolstest.Workspace(t, map[string]string{"here.txt": "yes\n"})
	bare := &sandbox.Bare{Dir: ws.Path, Env: sandbox.Environment(os.Environ())}
	t.Cleanup(func() { _ = bare.Close() })
	ws.Exec, ws.NoExec = bare, ""
	return ws
}

func TestSpec(t *testing.T) { toolstest.Spec(t, shell.Bash()) }

func TestBash(t *testing.T) {
	ws := workspace(t)
	for _, tt := range []struct {
		line, want string
		exit       int
	}{
		{"cat here.txt", "exit=0\nyes\n", 0},
		{"true", "exit=0\n", 0},
		{"echo out; echo err >&2; echo out again", "exit=0\nout\nerr\nout again\n", 0},
		{"echo so far; exit 3", "exit=3\nso far\n", 3},
		{"kill -9 $$", "exit=137\n", 137},
		{"cat", "exit=0\n", 0}, // input is closed
		{`printf '%s|' "$(printf 'a\n')" '$x' "q\"q"`, "exit=0\na|$x|q\"q|", 0},
		{`printf '\xff\n'`, "exit=0\n\uFFFD\n", 0},
		{"cd /; x=1", "exit=0\n", 0},
		{`echo "${PWD##*/} $x"`, "exit=0\n" + ws.Path[strings.LastIndex(ws.Path, "/")+1:] + " \n", 0}, // nothing is kept
		{"no-such-program-at-all 2>/dev/null", "exit=127\n", 127},
	} {
		got := toolstest.Call(t, shell.Bash(), ws, args{"command": tt.line})
		if got.Text != tt.want || got.IsError != (tt.exit != 0) {
			t.Errorf("bash(%q) = %+v, want %q", tt.line, got, tt.want)
		}
		if want := (tools.Command{Line: tt.line, Exit: tt.exit}); got.Command == nil || *got.Command != want {
			t.Errorf("bash(%q) command = %+v, want %+v", tt.line, got.Command, want)
		}
	}
}

func TestBashRefuses(t *testing.T) {
	ws := workspace(t)
	none := ws
	none.Exec, none.NoExec = nil, "no box on this system"
	broken := ws
	broken.Exec = brokenBox{}
	for _, tt := range []struct {
		ws   tools.Workspace
		in   args
		want string
	}{
		{none, args{"command": "true"}, "bash: no command can be run here: no box on this system\nhint: "},
		{broken, args{"command": "true"}, "bash: open box: " + sandbox.ErrNoBox.Error()},
		{ws, args{"command": " "}, "the command is empty"},
		{ws, args{"command": "a\x00b"}, "NUL"},
		{ws, args{"command": "true", "timeout": 601}, "timeout 601 is not between 0 and 600 seconds"},
		{ws, args{"command": "true", "timeout": -1}, "timeout -1 is not"},
		{ws, args{"command": "true", "background": true}, "background is unknown"},
	} {
		got := toolstest.Call(t, shell.Bash(), tt.ws, tt.in)
		if !got.IsError || !strings.Contains(got.Text, tt.want) || got.Command != nil {
			t.Errorf("bash(%v) = %+v, want a failed result with %q and no command", tt.in, got, tt.want)
		}
	}
}

type brokenBox struct{}

func (brokenBox) Run(context.Context, sandbox.Command) (sandbox.Output, error) {
	return sandbox.Output{}, fmt.Errorf("open box: %w", sandbox.ErrNoBox)
}

func TestBashTimeout(t *testing.T) {
	ws := workspace(t)
	start := time.Now()
	got := toolstest.Call(t, shell.Bash(), ws, args{"command": "printf begun; sleep 60 & sleep 60", "timeout": 0.2})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("bash with a timeout of 0.2 s took %v", took)
	}
	if want := "killed: timeout\nbegun\n[it had 0.2 seconds; timeout can give it more, up to 600]\n"; got.Text != want || !got.IsError || got.Command == nil || got.Command.Killed != "timeout" {
		t.Errorf("bash = %+v %+v, want %q", got, got.Command, want)
	}
}

func TestBashCancel(t *testing.T) {
	ws := workspace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	got, err := shell.Bash().Run(ctx, ws, []byte(`{"command": "sleep 60"}`))
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("bash ended %v after its start, want it within 2 s of the cancel", took)
	}
	if err == nil && (!got.IsError || got.Command.Killed == "") || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("bash = %+v, %v; want a killed command or ctx's error", got, err)
	}
	if got, err := shell.Bash().Run(ctx, ws, []byte(`{"command": "true"}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("bash after the cancel = %+v, %v; want ctx's error", got, err)
	}
}

func TestBashLongOutput(t *testing.T) {
	ws := workspace(t)
	got := toolstest.Call(t, shell.Bash(), ws, args{"command": "echo first; yes é | head -c 3000000; echo; echo last"}).Text
	if n := utf8.RuneCountInString(got); n > 4096+6144+100 || !utf8.ValidString(got) {
		t.Errorf("bash = %d characters, valid UTF-8 %v", n, utf8.ValidString(got))
	}
	head, rest, _ := strings.Cut(got, "[… ")
	size, tail, ok := strings.Cut(rest, " bytes cut; ")
	var cut int
	if _, err := fmt.Sscan(size, &cut); err != nil || !ok {
		t.Fatalf("bash = %q…, want a notice with the size of what was cut", got[:200])
	}
	_, tail, _ = strings.Cut(tail, "\n")
	head = strings.TrimSuffix(strings.TrimPrefix(head, "exit=0\n"), "\n")
	if whole := 6 + 3000000 + 1 + 5; len(head)+cut+len(tail) != whole {
		t.Errorf("shown %d + cut %d + shown %d, want %d in all", len(head), cut, len(tail), whole)
	}
	if !strings.HasPrefix(head, "first\n") || !strings.HasSuffix(tail, "last\n") {
		t.Errorf("bash shows %q … %q, want both ends", head[:20], tail[len(tail)-20:])
	}
	exact := toolstest.Call(t, shell.Bash(), ws, args{"command": "head -c 10240 /dev/zero | tr '\\0' x"}).Text
	if exact != "exit=0\n"+strings.Repeat("x", 10240) {
		t.Errorf("output of exactly the limit = %d bytes, want it whole", len(exact))
	}
}
