package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"skein/agent/journal"
	"skein/agent/model/script"
)

// commands are what scripts can do beside running programs.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"git-init-commit": gitInitCommit,
	"index-hash":      indexHash,
	"exit-code":       exitCode,
	"recorder":        recorder,
	"busy":            busy,
	"serve":           serve,
	"secrets":         secrets,
	"at-terminal":     atTerminal,
	"jsonl":           jsonl,
	"overlap":         overlap,
}

// gitInitCommit puts the current folder under git and commits all that is in it.
func gitInitCommit(ts *testscript.TestScript, _ bool, _ []string) {
	for _, args := range [][]string{
		{"init", "-q", "."},
		{"symbolic-ref", "HEAD", "refs/heads/main"},
		{"add", "-A"},
		{"commit", "-q", "-m", "start"},
	} {
		ts.Check(ts.Exec("git", args...))
	}
}

// indexHash FILE writes the checksum of git's index to a file.
func indexHash(ts *testscript.TestScript, _ bool, args []string) {
	index := ts.ReadFile(filepath.Join(".git", "index"))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), fmt.Appendf(nil, "%x\n", sha256.Sum256([]byte(index))), 0o600))
}

// exitCode N PROGRAM ARGS... runs a program that must end with this code.
func exitCode(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// recorder FILE serves a model that answers "done" to everything and writes the bodies of its
// requests to FILE, one a line. Its base URL is in $RECORDER_URL, its address in $RECORDER_ADDR.
func recorder(ts *testscript.TestScript, _ bool, args []string) {
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(out, "%s\n", body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}`)
	}))
	ts.Defer(func() {
		server.Close()
		_ = out.Close()
	})
	ts.Setenv("RECORDER_URL", server.URL+"/v1")
	ts.Setenv("RECORDER_ADDR", server.Listener.Addr().String())
}

// atTerminal PROMPT ANSWER OUT PROGRAM ARGS... runs a program whose standard input and error are
// a terminal. Ahead of the prompt a y is typed, which is to count for nothing; once the prompt
// was shown, the file ANSWER is typed, or what comes out of a FIFO of that name. OUT is given what the terminal showed, and the program's
// standard output behind it.
func atTerminal(ts *testscript.TestScript, _ bool, args []string) {
	person, program, err := openTerminal()
	ts.Check(err)
	defer func() { _ = person.Close() }()
	var stdout bytes.Buffer
	c := exec.Command(args[3], args[4:]...) //nolint:noctx // killed below
	c.Dir, c.Env = ts.MkAbs("."), scriptEnv(ts)
	c.Stdin, c.Stdout, c.Stderr = program, &stdout, program
	_, err = person.WriteString("y\n")
	ts.Check(err)
	ts.Check(c.Start())
	ts.Check(program.Close())
	timer := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	var shown []byte
	for buf, typed := make([]byte, 4096), false; ; {
		n, err := person.Read(buf)
		shown = append(shown, buf[:n]...)
		if !typed && bytes.Contains(shown, []byte(args[0])) {
			typed = true
			_, err := person.WriteString(ts.ReadFile(args[1]))
			ts.Check(err)
		}
		if err != nil { // the program has gone, and its end with it
			break
		}
	}
	err = c.Wait()
	shown = append(bytes.ReplaceAll(shown, []byte("\r\n"), []byte("\n")), stdout.Bytes()...)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), shown, 0o600))
	ts.Logf("%s", shown)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
}

// scriptEnv is a script's environment.
func scriptEnv(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "GOCACHE", "OLLAMA_HOST", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// busy serves a model that refuses every other request, the first among them, for a second; to
// the rest it answers "fine after all". Its base URL is in $BUSY_URL.
func busy(ts *testscript.TestScript, _ bool, _ []string) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1)%2 == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"not so fast"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine after all"},"finish_reason":"stop"}]}`)
	}))
	ts.Defer(server.Close)
	ts.Setenv("BUSY_URL", server.URL+"/v1")
}

// serve FILE serves a scripted model until the script ends. Its address is in $SERVED, such as
// 127.0.0.1:1234.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s, err := script.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	server, err := script.Listen(context.Background(), s, "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	ts.Setenv("SERVED", strings.TrimPrefix(server.Root(), "http://"))
}

// secrets SECRETS PATH... checks that no line of the file SECRETS stands in any of the files, or
// in the files of the folders; "stdout" and "stderr" are what the last program printed.
func secrets(ts *testscript.TestScript, _ bool, args []string) {
	planted := strings.Fields(ts.ReadFile(args[0]))
	look := func(name, text string) {
		for _, secret := range planted {
			if strings.Contains(text, secret) {
				ts.Fatalf("%s holds %s", name, secret)
			}
		}
	}
	for _, name := range args[1:] {
		if name == "stdout" || name == "stderr" {
			look(name, ts.ReadFile(name))
			continue
		}
		found := 0
		ts.Check(filepath.WalkDir(ts.MkAbs(name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			look(path, string(text))
			found++
			return err
		}))
		if found == 0 {
			ts.Fatalf("%s has no files", name)
		}
	}
}

// events reads a file of JSON lines, or what the last program printed.
func events(ts *testscript.TestScript, file string) []journal.Event {
	var list []journal.Event
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(file)))
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var e journal.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			ts.Fatalf("line %d is no event: %v", n, err)
		}
		list = append(list, e)
	}
	ts.Check(lines.Err())
	return list
}

// jsonl FILE ANSWER checks that every line is an event, that each agent's are numbered from 1,
// and that the last one ends the run with the answer.
func jsonl(ts *testscript.TestScript, _ bool, args []string) {
	list := events(ts, args[0])
	if len(list) == 0 {
		ts.Fatalf("no events")
	}
	seq := map[string]int{}
	for i, e := range list {
		if seq[e.Agent]++; e.Seq != seq[e.Agent] {
			ts.Fatalf("event %d of agent %s has number %d, want %d", i, e.Agent, e.Seq, seq[e.Agent])
		}
		if _, err := e.Decode(); err != nil {
			ts.Fatalf("event %d: %v", i, err)
		}
	}
	last, err := list[len(list)-1].Decode()
	ts.Check(err)
	end, ok := last.(*journal.RunEnded)
	if !ok || end.Answer != args[1] {
		ts.Fatalf("the last event is %s %s, want the end of the run with answer %q", list[len(list)-1].Kind, list[len(list)-1].Data, args[1])
	}
}

// overlap FILE N checks that N children worked at the same time: all of them for at least 95 %
// of the time that the shortest took, and all together at most 0.3 s longer than the slowest.
func overlap(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	started, ended := map[string]time.Time{}, map[string]time.Time{}
	for _, e := range events(ts, args[0]) {
		switch {
		case e.Agent == "0":
		case e.Kind == "agent-started":
			started[e.Agent] = e.Time
		case e.Kind == "agent-ended":
			ended[e.Agent] = e.Time
		}
	}
	if len(started) != n || len(ended) != n {
		ts.Fatalf("%d children started and %d ended, want %d", len(started), len(ended), n)
	}
	var first, lastStart, firstEnd, last time.Time
	var shortest, slowest time.Duration
	for child, from := range started {
		to := ended[child]
		took := to.Sub(from)
		if first.IsZero() || from.Before(first) {
			first = from
		}
		if from.After(lastStart) {
			lastStart = from
		}
		if firstEnd.IsZero() || to.Before(firstEnd) {
			firstEnd = to
		}
		if to.After(last) {
			last = to
		}
		if shortest == 0 || took < shortest {
			shortest = took
		}
		slowest = max(slowest, took)
	}
	together, wall := firstEnd.Sub(lastStart), last.Sub(first)
	if float64(together) < 0.95*float64(shortest) || wall > slowest+300*time.Millisecond {
		ts.Fatalf("worked together for %v of %v, wall %v for a slowest of %v", together, shortest, wall, slowest)
	}
}
