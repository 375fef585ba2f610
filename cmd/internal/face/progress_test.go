package face_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skein/agent/journal"
	"skein/agent/model"
	"skein/cmd/internal/face"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// events returns what a journal tells of a run in which everything happens once.
func events(t *testing.T) []journal.Event {
	t.Helper()
	var seen []journal.Event
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	j := journal.New(t.TempDir(), journal.Options{
		Session: "s", Now: func() time.Time { return now }, Watch: func(e journal.Event) { seen = append(seen, e) },
	})
	usage := model.Usage{Input: model.Tokens(100), CacheRead: model.Tokens(64), Output: model.Tokens(7)}
	for _, e := range []struct {
		agent   string
		payload journal.Payload
	}{
		{"0", &journal.RunStarted{Instruction: "fix it"}},
		{"0", &journal.Notice{Text: "no git here: writers work one after another in place", Hint: "put the folder under git"}},
		{"0", &journal.AgentStarted{}},
		{"0", &journal.Attempt{Turn: 1, Number: 1, Error: "ask p: status 429: slow down", Wait: 2.04}},
		{"0", &journal.Reply{Turn: 1, Message: model.Message{Role: model.Assistant, Text: "I ask two.\n  indented \x1b[31m"}}},
		{"0.1", &journal.AgentQueued{Title: "look", Task: "look for it", Access: "read", Index: 1, Of: 2, Role: "reviewer", Model: "vllm/small", Cached: model.Tokens(600), New: model.Tokens(64)}},
		{"0.2", &journal.AgentQueued{Task: "change\nit", Access: "write", Index: 2, Of: 2}},
		{"0.1", &journal.AgentStarted{}},
		{"0.1", &journal.Call{ID: "a", Tool: "grep", Args: `{"pattern":"a b\u001b]0;x","path":"src"}`}},
		{"0.1", &journal.Call{ID: "b", Tool: "bash", Args: `{"command":`}},
		{"0.1", &journal.Result{ID: "a", Tool: "grep", OK: true, Text: "src/a.go:1: a b"}},
		{"0.1", &journal.Result{ID: "b", Tool: "bash", Text: "arguments are no JSON"}},
		{"0.2", &journal.Checked{Command: "make test", Exit: 2, Text: "two tests failed\x1b[2J\n"}},
		{"0.1", &journal.AgentEnded{Stop: "completed", Turns: 1, Usage: usage}},
		{"0.2", &journal.AgentEnded{Stop: "timeout", Cause: "stopped at its limit of 15m0s", Turns: 3}},
		{"0.8", &journal.AgentEnded{Stop: "stuck", Turns: 2}},
		{"0", &journal.Settled{Child: "0.8", People: "stuck"}},
		{"0", &journal.Settled{Child: "0.9", People: "refused (no room)"}},
		{"0", &journal.Settled{Child: "0.1", People: "reported"}},
		{"0", &journal.Result{ID: "c", Tool: "delegate_task", OK: true, Text: "a report"}},
		{"0", &journal.Settled{Child: "0.4", Change: "none", People: "no changes"}},
		{"0", &journal.Resolved{Child: "0.2", Resolver: "0.5", Conflicts: []string{"a.go (content)"}, Cause: "conflict markers are left in a.go"}},
		{"0", &journal.Resolved{Child: "0.2", Resolver: "0.6", Conflicts: []string{"a.go (content)"}, Commit: "abc"}},
		{"0", &journal.Settled{Child: "0.2", Change: "merged", People: "timeout (stopped at its limit of 15m0s); merged: 2 files, +3 -1: a.go, b.go"}},
		{"0", &journal.Settled{Child: "0.3", Change: "conflict", People: "conflict: 1 file, +1 -1: a.go; conflicts: a.go (content)", Show: "git log -p -1 refs/skein/s/1/kept/0.3"}},
		{"0", &journal.Result{ID: "d", Tool: "delegate_task", Text: "child 3 of 4 \"x\" · completed"}},
		{"0", &journal.Call{ID: "e", Tool: "delegate_task", Args: `{"task":"more"}`}},
		{"0", &journal.Result{ID: "e", Tool: "delegate_task", Text: "Subagent limit reached: this run may have 4 subagents. Do the task yourself."}},
		{"0", &journal.Call{ID: "f", Tool: "bash", Args: `{"command":"false"}`}},
		{"0", &journal.Result{ID: "f", Tool: "bash", Text: "exit=1\n", Command: "false", Exit: 1}},
		{"0", &journal.Fault{Text: "panic: boom", Stack: "goroutine 1"}},
		{"0", &journal.RunEnded{Stop: "max-turns", Cause: "stopped at its limit of 2 turns", Children: 4, Merged: 1, Kept: 1, Cancelled: 1, Unfinished: 1, Usage: usage, Seconds: 1.24, Busy: 2.5}},
	} {
		j.Append(e.agent, e.payload)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestProgress(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		name := "plain"
		if verbose {
			name = "verbose"
		}
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := face.NewProgress(&out, verbose)
			for _, e := range events(t) {
				p.Watch(e)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("Watch printed:\n%swant:\n%s", out.String(), want)
			}
			if strings.ContainsRune(out.String(), '\x1b') {
				t.Errorf("Watch printed a control character of the model's")
			}
		})
	}
}

func TestProgressSkipsUnknownKinds(t *testing.T) {
	var out bytes.Buffer
	face.NewProgress(&out, true).Watch(journal.Event{Kind: "from the future", Data: json.RawMessage(`{}`)})
	if out.Len() != 0 {
		t.Errorf("Watch of an unknown kind printed %q, want nothing", out.String())
	}
}

func TestJSONWritesTheJournalsObjects(t *testing.T) {
	var out bytes.Buffer
	watch := face.NewJSON(&out).Watch
	want := events(t)
	for _, e := range want {
		watch(e)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("JSON wrote %d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		var got journal.Event
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %d is no JSON: %v", i+1, err)
		}
		if got.Kind != want[i].Kind || got.Agent != want[i].Agent || got.Seq != want[i].Seq {
			t.Errorf("line %d = %s %s %d, want %s %s %d", i+1, got.Kind, got.Agent, got.Seq, want[i].Kind, want[i].Agent, want[i].Seq)
		}
		if p, err := got.Decode(); err != nil || p == nil {
			t.Errorf("line %d does not decode: %v", i+1, err)
		}
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain":          "plain",
		"two\n\tlines":   "two\n\tlines",
		"\x1b[31mred":    `\x1b[31mred`,
		"bell\a\r":       `bell\x07\x0d`,
		"c1 \u009b1m":    `c1 \x9b1m`,
		"a\u202eb\u2066": `a\u202eb\u2066`,
		"ünïcode ✓":      "ünïcode ✓",
		"bad \xff":       `bad \xff`,
		"می\u200cخواهم":  "می\u200cخواهم",
		"\u200d\x1b":     "\u200d" + `\x1b`,
	} {
		if got := face.Visible(in); got != want {
			t.Errorf("Visible(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReceiptShowsTheCost(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0.00", 12.345: "$12.35", 0.5: "$0.50", 0.0123: "$0.012", 0.00052: "$0.00052", 0.000000001: "$0.00000000",
	} {
		if got := face.Receipt(&journal.RunEnded{Stop: "completed", Cost: &usd}); !strings.Contains(got[0], ", "+want+", ") {
			t.Errorf("Receipt of %g dollars = %q, want %s in it", usd, got, want)
		}
	}
	if got := face.Receipt(&journal.RunEnded{Stop: "completed"}); len(got) != 1 || !strings.Contains(got[0], "cost unavailable") {
		t.Errorf("Receipt without a cost = %q, want it said", got)
	}
	least := 0.5
	part := model.Usage{Input: model.Tokens(36), CacheRead: model.Tokens(64), Output: model.Tokens(7)}
	if got, want := face.Receipt(&journal.RunEnded{Stop: "timeout", Counted: part, AtLeast: &least})[0],
		"run: timeout, at least 100 tokens in (64 cached, 64%), 7 out, cost at least $0.50, 0.0 s"; got != want {
		t.Errorf("Receipt of what is known in part = %q, want %q", got, want)
	}
}

func TestLine(t *testing.T) {
	if got, want := face.Line("a\n  b\tc ddddd", 9), "a b c dd…"; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{"path":"a.go","pattern":"x y"}`: `path=a.go pattern="x y"`,
		`{"all":true,"n":3,"s":""}`:       `all=true n=3 s=""`,
		`{"command":"a\nb"}`:              `command="a\nb"`,
		`{"cut":`:                         `{"cut":`,
		`[1]`:                             `[1]`,
		``:                                ``,
	} {
		if got := face.Arguments(in); got != want {
			t.Errorf("Arguments(%s) = %s, want %s", in, got, want)
		}
	}
}
