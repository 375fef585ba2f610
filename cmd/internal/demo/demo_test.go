package demo

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skein/agent"
	"skein/agent/model"
	"skein/agent/model/script"
	"skein/delegate"
	"skein/orchestrator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// at is a moment of the made-up run.
func at(seconds float64) time.Time {
	return time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// kept returns a run that keeps every promise.
func kept() outcome {
	usage := model.Usage{Input: model.Tokens(36), CacheRead: model.Tokens(64), Output: model.Tokens(7)}
	child := func(ordinal, title string, writes bool, queued, started, ended, settled float64, files ...string) *worker {
		w := &worker{
			ordinal: ordinal, title: title, writes: writes, isolated: writes,
			queued: at(queued), started: at(started), ended: at(ended), settled: at(settled),
			stop: "completed", turns: 4, usage: usage, files: files,
		}
		if writes {
			w.change = delegate.Merged
		}
		return w
	}
	o := outcome{
		run:       orchestrator.Outcome{Stop: agent.Completed},
		delegated: true,
		before:    map[string]string{"README.md": "pantry\n", "api/api.go": "a\nb\n", "cache/cache.go": "c\n", "cli/cli.go": "d\n"},
		after:     map[string]string{"README.md": "pantry\n", "api/api.go": "A\nB\n", "cache/cache.go": "C\n", "cli/cli.go": "D\n"},
		index:     [2][]byte{[]byte("index"), []byte("index")},
		history: &history{began: at(0), ended: at(11), merges: []string{"0.4", "0.5", "0.6"}, agents: []*worker{
			{ordinal: "0", started: at(0), ended: at(11), turns: 4, usage: model.Usage{}},
			child("0.1", "look at cache", false, 1, 1, 4, 4),
			child("0.2", "look at api", false, 1, 1, 3, 4),
			child("0.3", "look at cli", false, 1, 2, 4, 4),
			child("0.4", "change cache", true, 5, 5, 9, 9.2, "cache/cache.go"),
			child("0.5", "change item", true, 5, 5, 8, 9.5, "api/api.go"),
			child("0.6", "change totals", true, 5, 5, 7, 9.8, "api/api.go", "cli/cli.go"),
		}},
	}
	for _, path := range []string{"cache/cache.go", "api/api.go", "api/api.go", "cli/cli.go"} {
		o.history.results = append(o.history.results, result{agent: "0.4", tool: "search_replace", args: `{"path":"` + path + `"}`, ok: true})
	}
	o.history.results = append(o.history.results, result{
		agent: "0.2", tool: "bash", args: `{"command":"echo x > README.md"}`, text: "exit=1\nbash: README.md: Read-only file system",
	})
	return o
}

// TestPromises breaks one promise after the other: the demo must notice each.
func TestPromises(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks func(o *outcome)
		want   string // start of the broken promise
	}{
		{"nothing", func(*outcome) {}, ""},
		{"the run was stopped", func(o *outcome) { o.run.Stop = agent.MaxTurns }, "the run ended by itself"},
		{"a reader came late", func(o *outcome) { o.history.agents[3].started = at(3.5) }, "three readers worked at once"},
		{"a reader is missing", func(o *outcome) { o.history.agents[3].title = "" }, "three readers worked at once"},
		{"the attempt to write worked", func(o *outcome) { o.history.results[4].ok = true }, "a reader's"},
		{"the attempt to write was not made", func(o *outcome) { o.history.results = o.history.results[:4] }, "a reader's"},
		{"writers finished as asked", func(o *outcome) { o.history.agents[6].ended = at(9.1) }, ""},
		{"writers finished in order", func(o *outcome) {
			o.history.agents[4].ended, o.history.agents[6].ended = at(7), at(9)
		}, "three writers finished in another order"},
		{"merged in another order", func(o *outcome) { o.history.merges = []string{"0.6", "0.5", "0.4"} }, "they were merged in the order asked"},
		{"one was not merged", func(o *outcome) { o.history.merges = o.history.merges[:2] }, "they were merged in the order asked"},
		{"no file of two", func(o *outcome) { o.history.agents[6].files = []string{"cli/cli.go"} }, "two of them changed the same file"},
		{"the index changed", func(o *outcome) { o.index[1] = []byte("other") }, "what was staged is staged still"},
		{"another file changed", func(o *outcome) { o.after["extra"] = "x" }, "nothing else changed"},
		{"an edit was lost", func(o *outcome) { o.after["cli/cli.go"] = o.before["cli/cli.go"] }, "nothing else changed"},
		{"the tests fail", func(o *outcome) { o.tests = errors.New("exit status 1") }, "go test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := kept()
			test.breaks(&o)
			var broken []string
			for _, p := range o.promises() {
				if !p.kept {
					broken = append(broken, p.text)
				}
			}
			switch {
			case test.want == "" && len(broken) > 0:
				t.Errorf("promises broken: %q, want none", broken)
			case test.want != "" && (len(broken) != 1 || !strings.HasPrefix(broken[0], test.want)):
				t.Errorf("promises broken: %q, want one: %q", broken, test.want)
			}
		})
	}
}

func TestAccount(t *testing.T) {
	var out strings.Builder
	if err := account(Options{Out: &out}, kept()); err != nil {
		t.Errorf("account = %v, want nil", err)
	}
	golden := filepath.Join("testdata", "account.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("account printed:\n%swant:\n%s", out.String(), want)
	}
	o := kept()
	o.tests = errors.New("exit status 1")
	if broken := (*BrokenError)(nil); !errors.As(account(Options{Out: &out}, o), &broken) || len(broken.Promises) != 1 {
		t.Errorf("account of a run with failing tests = %v, want one broken promise", broken)
	}
}

// TestScriptsParse finds a slip in the scripts before the demo does.
func TestScriptsParse(t *testing.T) {
	for name, rules := range map[string][]byte{"delegated.yaml": delegated, "alone.yaml": alone} {
		if _, err := script.Parse(rules); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnpack proves that the project is as its owner left it: real, under git, with work of
// every kind that is not committed.
func TestUnpack(t *testing.T) {
	p, err := unpack(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !p.git {
		need(t, false, "git is not on the PATH")
	}
	if out, err := p.test(t.Context()); err != nil {
		t.Errorf("its tests fail: %v: %s", err, out)
	}
	if err := p.run(t.Context(), "diff", "--quiet", "--exit-code"); err == nil {
		t.Error("nothing is changed but not staged")
	}
	if err := p.run(t.Context(), "diff", "--quiet", "--cached"); err == nil {
		t.Error("nothing is staged")
	}
	if err := p.run(t.Context(), "cat-file", "-e", ":storage/testdata/shelf.txt"); err == nil {
		t.Error("storage/testdata/shelf.txt is known to git, want it untracked")
	}
}

// need skips a test that cannot be done here, or fails it where nothing may be skipped.
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
