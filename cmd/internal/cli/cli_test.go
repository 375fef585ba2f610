package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/agent"
	"skein/agent/model"
	"skein/orchestrator"
)

var update = flag.Bool("update", false, "rewrite docs/reference.md")

// TestReference keeps docs/reference.md what the tree of commands says.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "reference.md")
	if *update {
		if err := os.WriteFile(path, []byte(Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Reference() {
		t.Errorf("docs/reference.md differs from the commands; write it anew with go test ./cmd/internal/cli -update")
	}
}

// TestHelp looks at each command's help: it fits a screen, and says what there is to know.
func TestHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		t.Run(c.CommandPath(), func(t *testing.T) {
			var out bytes.Buffer
			c.SetOut(&out)
			if err := c.Help(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) > 50 {
				t.Errorf("help has %d lines, want at most 50", len(lines))
			}
			for _, line := range lines {
				if n := len([]rune(line)); n > 120 {
					t.Errorf("help has a line of %d characters, want at most 120: %s", n, line)
				}
			}
			if topic := c.IsAdditionalHelpTopicCommand(); topic == strings.Contains(out.String(), exitCodesOf(c)) {
				t.Errorf("help of a topic (%v) lists the exit codes, or that of a command does not", topic)
			}
			if c.Short == "" || strings.HasSuffix(c.Short, ".") {
				t.Errorf("Short = %q, want a sentence without a full stop", c.Short)
			}
		})
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
				walk(sub)
			}
		}
	}
	walk(New())
}

// TestEveryFlagIsInHelp: what the help of run leaves out is in the topic that it names.
func TestEveryFlagIsInHelp(t *testing.T) {
	var shown bytes.Buffer
	help := func(args ...string) string {
		root := New()
		root.SetOut(&shown)
		root.SetArgs(append([]string{"help"}, args...))
		shown.Reset()
		if err := root.Execute(); err != nil {
			t.Fatalf("help %v: %v", args, err)
		}
		return shown.String()
	}
	own := help("run")
	run, _, err := New().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range groups(run) {
		text := own
		if name := topic(set); name != "" {
			if text = help(name); !strings.Contains(own, "skein help "+name) {
				t.Errorf("help of run does not name the topic %s", name)
			}
		}
		set.VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, "--"+f.Name+" ") {
				t.Errorf("no help lists --%s", f.Name)
			}
		})
	}
}

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		code int
		hint string
	}{
		{"usage", &usageError{command: "run", text: "no instruction", hint: "say what to do"}, 2, "say what to do"},
		{"stuck", ended(orchestrator.Outcome{Stop: agent.Stuck, Cause: "the same call"}), 3, "--verbose"},
		{"max turns", ended(orchestrator.Outcome{Stop: agent.MaxTurns}), 3, "--max-turns"},
		{"budget", ended(orchestrator.Outcome{Stop: agent.OverBudget}), 3, "--budget-tokens"},
		{"timeout", ended(orchestrator.Outcome{Stop: agent.Timeout}), 3, "--timeout"},
		{"output limit", ended(orchestrator.Outcome{Stop: agent.OutputLimit}), 3, "--max-tokens"},
		{"nobody asked", ended(orchestrator.Outcome{Stop: agent.Completed, Unasked: true}), 3, "--access auto"},
		{"nobody merged", ended(orchestrator.Outcome{Stop: agent.Completed, Unasked: true, Unmerged: []string{"0.2", "0.3"}}), 3, "skein worktrees merge 0.2"},
		{"model", ended(orchestrator.Outcome{Stop: agent.ModelError, Err: &model.Error{Provider: "p", Message: "m", Advice: "start it"}}), 1, "start it"},
		{"cancelled", ended(orchestrator.Outcome{Stop: agent.Cancelled}), 130, "merged"},
		{"cancelled, with kept changes", ended(orchestrator.Outcome{Stop: agent.Cancelled, Kept: 2}), 130, "skein worktrees list"},
		{"timeout, with kept changes", ended(orchestrator.Outcome{Stop: agent.Timeout, Kept: 1}), 3, "skein worktrees list"},
		{"context", fmt.Errorf("run: %w", context.Canceled), 130, ""},
		{"harness", errors.Join(errors.New("one\nline"), errors.New("another")), 1, "--verbose"},
		{"hostile", errors.New("title \x1b]0;pwned\a"), 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if got := report(&out, newRun(), test.err); got != test.code {
				t.Errorf("report = %d, want %d", got, test.code)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[0], "skein: ") || !strings.HasPrefix(lines[1], "skein: hint: ") {
				t.Fatalf("report printed %q, want a line and its hint", out.String())
			}
			if !strings.Contains(lines[1], test.hint) {
				t.Errorf("hint = %q, want it to name %s", lines[1], test.hint)
			}
			if strings.ContainsRune(out.String(), '\x1b') {
				t.Errorf("report printed a control character: %q", out.String())
			}
		})
	}
	var out bytes.Buffer
	if report(&out, newServe(), errors.New("broken")); strings.Contains(out.String(), "--verbose") {
		t.Errorf("report of a command without --verbose = %q, want another hint", out.String())
	}
	if err := ended(orchestrator.Outcome{Stop: agent.Completed}); err != nil {
		t.Errorf("ended(completed) = %v, want nil", err)
	}
}

// TestFlagFaults gives every flag of run a value that it cannot have: what is wrong is said in
// words, and the hint names a help that has the flag.
func TestFlagFaults(t *testing.T) {
	run, _, err := New().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	run.Flags().VisitAll(func(f *pflag.Flag) {
		invalid := run.Flags().Set(f.Name, "?")
		if t := f.Value.Type(); invalid == nil && (t == "string" || t == "stringArray") {
			return
		}
		fault := flagFault(run, invalid)
		if text := fault.Error(); !strings.HasPrefix(text, "run: --"+f.Name+` "?": want `) || strings.Contains(text, "strconv") {
			t.Errorf("--%s ?: %q, want it to say what the flag takes", f.Name, text)
		}
		var said *usageError
		page := "see skein run --help"
		if len(f.Annotations[topicOf]) > 0 {
			page = "see skein help subagents"
		}
		if errors.As(fault, &said); said.hint != page && said.hint != "as in --"+f.Name+" "+f.DefValue {
			t.Errorf("--%s ?: hint %q, want %q or an example", f.Name, said.hint, page)
		}
	})
	if err := flagFault(run, run.Flags().Set("jobs", strings.Repeat("9", 30))); !strings.HasSuffix(err.Error(), ": too large a number") {
		t.Errorf("--jobs 999… = %q, want it to say that this is too large", err)
	}
}

func TestToolNames(t *testing.T) {
	for in, want := range map[string]string{"all": "<nil>", "none": "[]", "bash": "[bash]", "bash, grep": "[bash grep]"} {
		got, err := toolNames(in)
		text := fmt.Sprint(got)
		if got == nil {
			text = "<nil>"
		}
		if err != nil || text != want {
			t.Errorf("toolNames(%q) = %s, %v, want %s", in, text, err, want)
		}
	}
	for _, in := range []string{"", "bash,", "shell"} {
		if got, err := toolNames(in); code(err) != exitUsage {
			t.Errorf("toolNames(%q) = %v, %v, want a fault of usage", in, got, err)
		}
	}
}

func TestParameters(t *testing.T) {
	good := modelOptions{temperature: "0.2", seed: "-7", reasoning: "2048", params: []string{"top_p=0.9", `stop=["=x"]`}}
	p, err := good.parameters(newCheck())
	if err != nil || *p.Temperature != 0.2 || *p.Seed != -7 || p.Reasoning != "2048" || string(p.Extra["top_p"]) != "0.9" || string(p.Extra["stop"]) != `["=x"]` {
		t.Errorf("parameters = %+v, %v", p, err)
	}
	if p, err := (modelOptions{}).parameters(newCheck()); err != nil || p.Temperature != nil || p.Seed != nil || p.Reasoning != "" || p.Extra != nil {
		t.Errorf("parameters of nothing = %+v, %v, want nothing", p, err)
	}
	for _, bad := range []modelOptions{
		{temperature: "hot"},
		{temperature: "-1"},
		{temperature: "NaN"},
		{temperature: "Inf"},
		{seed: "1.5"},
		{reasoning: "much"},
		{reasoning: "0"},
		{reasoning: "-5"},
		{params: []string{"top_p"}},
		{params: []string{"=1"}},
		{params: []string{"a=b"}},
		{params: []string{"a="}},
		{params: []string{"a=1", "a=2"}},
	} {
		if p, err := bad.parameters(newCheck()); code(err) != exitUsage {
			t.Errorf("parameters(%+v) = %+v, %v, want a fault of usage", bad, p, err)
		}
	}
}

func TestForm(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(file, []byte("{\n  \"type\": \"object\", \"required\": [\"n\"], \"properties\": {\"n\": {\"type\": \"integer\"}}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := form(file)
	if err != nil || strings.ContainsAny(string(f.Schema), " \n") {
		t.Fatalf("form = %+v, %v, want the schema without white space", f, err)
	}
	for answer, good := range map[string]bool{
		`{"n": 1}`: true, "\n {\"n\": 1}\n": true, `{"n": 1.5}`: false, `{}`: false, `[1]`: false, "": false,
		"The answer: {\"n\": 1}": false, `{"n": 1} {"n": 2}`: false, "```json\n{\"n\": 1}\n```": false,
	} {
		if err := f.Check(answer); (err == nil) != good {
			t.Errorf("Check(%q) = %v, want it good: %v", answer, err, good)
		}
	}
	if f, err := form(""); f != nil || err != nil {
		t.Errorf("form of no file = %v, %v, want none", f, err)
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"},
	}}
	if got, want := version(info, true), "skein v0.1.0 go1.26.0 commit abc with changes"; got != want {
		t.Errorf("version = %q, want %q", got, want)
	}
	info.Settings = nil
	if got, want := version(info, true), "skein v0.1.0 go1.26.0"; got != want {
		t.Errorf("version = %q, want %q", got, want)
	}
	if got, want := version(nil, false), "skein, of an unknown build"; got != want {
		t.Errorf("version = %q, want %q", got, want)
	}
}

func TestInside(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(dir, filepath.Join(other, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		dir: true, filepath.Join(dir, "a", "b"): true, filepath.Join(dir, "..x"): true, filepath.Join(other, "link", "tape"): true,
		other: false, filepath.Join(dir, "..", "tape"): false, filepath.Dir(dir): false,
	} {
		if got := inside(path, dir); got != want {
			t.Errorf("inside(%s, %s) = %v, want %v", path, dir, got, want)
		}
	}
}
