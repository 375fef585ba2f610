package program_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skein/agent/model"
	"skein/agent/model/command"
	"skein/agent/model/text"
	"skein/cmd/internal/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func need(t *testing.T, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("SKEIN_REQUIRE") == "all":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

func needShell(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("sh")
	need(t, err == nil, "no sh on PATH")
}

func TestRun(t *testing.T) {
	needShell(t)
	for _, tt := range []struct {
		name, script, input string
		exit                int
		out, errOut         string
	}{
		{"both streams", "cat; echo oops >&2", "hello\n", 0, "hello\n", "oops\n"},
		{"exit code", "exit 7", "", 7, "", ""},
		{"signal", "kill -TERM $$", "", 143, "", ""},
		{"input not read", "echo done", strings.Repeat("x", 1<<20), 0, "done\n", ""},
		{"no terminal", "(: < /dev/tty) 2> /dev/null || echo none", "", 0, "none\n", ""},
	} {
		var out, errOut bytes.Buffer
		exit, err := program.Run(t.Context(), []string{"sh", "-c", tt.script}, strings.NewReader(tt.input), &out, &errOut)
		if err != nil || exit != tt.exit || out.String() != tt.out || errOut.String() != tt.errOut {
			t.Errorf("%s: Run = %d, %v, out %q, err %q; want %d, %q, %q", tt.name, exit, err, out.String(), errOut.String(), tt.exit, tt.out, tt.errOut)
		}
	}
}

func TestRunStartsNothing(t *testing.T) {
	_, err := program.Run(t.Context(), []string{filepath.Join(t.TempDir(), "none")}, nil, io.Discard, io.Discard)
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "start program: ") {
		t.Errorf("Run of a file that is not there = %v", err)
	}
}

// family is a script that starts a child, writes both ids to a file and goes on for ever.
const family = `sleep 1000 & echo $$ $! > "$1.part"; mv "$1.part" "$1"; wait`

func TestCancelEndsDescendants(t *testing.T) {
	needShell(t)
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan time.Time, 1)
	go func() { // the receive below waits for it
		for i := 0; i < 10_000; i++ {
			if _, err := os.Stat(pids); err == nil {
				break
			}
			time.Sleep(time.Millisecond) // a real process is being started
		}
		cancelled <- time.Now()
		cancel()
	}()
	_, err := program.Run(ctx, []string{"sh", "-c", family, "family", pids}, nil, io.Discard, io.Discard)
	if took := time.Since(<-cancelled); err != nil || took > 2*time.Second {
		t.Errorf("Run = %v, %v after the cancel, want at most 2s", err, took)
	}
	checkEnded(t, pids)
}

// What a program leaves behind when it ends is ended too, and not waited for long.
func TestEndEndsDescendants(t *testing.T) {
	needShell(t)
	pids := filepath.Join(t.TempDir(), "pids")
	var out bytes.Buffer
	start := time.Now()
	exit, err := program.Run(t.Context(), []string{"sh", "-c", `echo said; sleep 1000 & echo $! > "$1"`, "family", pids}, nil, &out, io.Discard)
	if took := time.Since(start); err != nil || exit != 0 || out.String() != "said\n" || took > 10*time.Second {
		t.Errorf("Run = %d, %v, %q after %v", exit, err, out.String(), took)
	}
	checkEnded(t, pids)
}

func checkEnded(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; alive(pid); i++ {
			if i == 2000 {
				t.Fatalf("process %d still runs", pid)
			}
			time.Sleep(time.Millisecond) // the system takes a moment to take it away
		}
	}
}

// alive reports whether a process runs. One that ended and that nobody waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// A shell script as the model: it calls a tool, reads the result and answers.
func TestProgramAsModel(t *testing.T) {
	needShell(t)
	script := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
seen=$(cat)
case $seen in
*"TOOL_RESULT grep (ok)"*) echo "It is in a.go." ;;
*) printf 'I look.\nTOOL_CALL {"name":"grep","arguments":{"pattern":"x"}}\nTOOL_RESULT grep (ok)\nmade up\n' ;;
esac
`), 0o700); err != nil {
		t.Fatal(err)
	}
	below, err := command.New(command.Options{Argv: []string{script}, Run: program.Run})
	if err != nil {
		t.Fatal(err)
	}
	c := text.Client(below)
	tools, err := c.EncodeTools([]model.Tool{{Name: "grep", Description: "Search.", Schema: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	tr := model.NewTranscript(c)
	ask := func(m model.Message) model.Reply {
		t.Helper()
		if err := tr.Append(m); err != nil {
			t.Fatal(err)
		}
		reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Tools: tools})
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Append(reply.Message); err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first := ask(model.Message{Role: model.User, Text: "find x"})
	if calls := first.Message.Calls; len(calls) != 1 || calls[0].Name != "grep" || first.Message.Text != "I look." {
		t.Fatalf("first reply = %+v, want a call of grep", first.Message)
	}
	last := ask(model.Message{Role: model.ToolRole, CallID: first.Message.Calls[0].ID, Name: "grep", Text: "a.go:1"})
	if last.Message.Text != "It is in a.go." || last.Usage != (model.Usage{}) {
		t.Errorf("last reply = %q, usage %v; want the answer and no usage", last.Message.Text, last.Usage)
	}
}
