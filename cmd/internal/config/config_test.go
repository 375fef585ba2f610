package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/agent/model"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestLoad(t *testing.T) {
	c, err := load(t, `# mine
model: vllm/some/model
base_url: http://127.0.0.1:8000/v1
retry_for: 90s
stream: off
child_models: [openai/other, vllm/x]
models:
  vllm/some/model:
    window: 32768
    output: 4096
    date: 2026-11-01
    prices: {input: 0.5, cache_read: 0.05, cache_write: 0.6, output: 2}
  openai/other:
    prices:
      input: 1
      output: 3.5
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "vllm/some/model" || c.BaseURL != "http://127.0.0.1:8000/v1" || c.RetryFor != 90*time.Second || c.Stream != "off" || !slices.Equal(c.ChildModels, []string{"openai/other", "vllm/x"}) {
		t.Errorf("Load = %+v", c)
	}
	for name, want := range map[string]Row{
		"vllm/some/model": {
			Window: 32768, Output: 4096, Date: "2026-11-01", Known: true,
			Price: &model.Price{Input: 0.5, CacheRead: 0.05, CacheWrite: 0.6, Output: 2},
		},
		// What has no price of its own in the cache costs what input costs.
		"openai/other":            {Window: 128_000, Output: 8192, Known: true, Price: &model.Price{Input: 1, CacheRead: 1, CacheWrite: 1, Output: 3.5}},
		"deepseek/deepseek-flash": {Window: 1_000_000, Output: 384_000, Date: "2026-10-04", Known: true},
		"openai/never-heard-of":   {Window: 128_000, Output: 8192},
	} {
		if got := c.Row(name); !reflect.DeepEqual(got, want) {
			t.Errorf("Row(%s) = %+v, want %+v", name, got, want)
		}
	}
	if got, want := c.Names(), []string{"deepseek/deepseek-flash", "openai/other", "vllm/some/model"}; !slices.Equal(got, want) {
		t.Errorf("Names = %q, want %q", got, want)
	}
}

func TestExampleIsRead(t *testing.T) {
	c, err := load(t, Example)
	row := c.Row(c.Model)
	if err != nil || c.BaseURL == "" || c.RetryFor == 0 || c.Stream == "" || !row.Known || row.Date == "" || row.Price == nil || row.Price.CacheRead != 0.05 || len(c.ChildModels) == 0 {
		t.Errorf("Load(Example) = %+v with %+v, %v, want everything in it", c, row, err)
	}
}

// A file's row stands in place of a built-in one.
func TestRowOfTheFileComesFirst(t *testing.T) {
	c, err := load(t, "models: {deepseek/deepseek-flash: {output: 1000}}")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Row("deepseek/deepseek-flash"); got.Output != 1000 || got.Window != guessedWindow {
		t.Errorf("Row = %+v, want the file's", got)
	}
}

func TestFaultsHaveTheirLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		line int
		want string
	}{
		{"model: a/b\nmodle: c/d\n", 2, `unknown field "modle"`},
		{"model: a/b\nmodel: c/d\n", 2, "model"},
		{"model: [a, b]\n", 1, "string"},
		{"model: a/b\nretry_for: soon\n", 2, `"soon" is no time`},
		{"retry_for: -5s\n", 1, `"-5s" is no time`},
		{"child_models: a/b\n", 1, "list of provider/name"},
		{"child_models:\n- a/b\n- nameless\n", 3, `"nameless" is not like`},
		{"child_models:\n- a/b\n- [c/d]\n", 3, "is not like"},
		{"child_models: [a/b,\n a/b]\n", 2, "a/b is there twice"},
		{"\nstream: perhaps\n", 2, `"perhaps" is neither on nor off`},
		{"api_key: sk-1\n", 1, `unknown field "api_key"`},
		{"models:\n  - a\n", 2, "table of rows"},
		{"models:\n  nameless:\n    window: 1\n", 2, "provider/name"},
		{"models:\n  a/b: 5\n", 2, "a row of window"},
		{"models:\n  a/b:\n    widow: 1\n", 3, `unknown field "widow"`},
		{"models:\n  a/b:\n    window: many\n", 3, `"many" is no number of tokens`},
		{"models:\n  a/b:\n    window: 0\n", 3, "no number of tokens"},
		{"models:\n  a/b:\n    window: 1.5\n", 3, "no number of tokens"},
		{"models:\n  a/b:\n    window: 100\n    output: 200\n", 2, "more than window"},
		{"models:\n  a/b:\n    date: yesterday\n", 3, "no date"},
		{"models:\n  a/b:\n    prices:\n      input: free\n      output: 1\n", 4, `"free" is no amount`},
		{"models:\n  a/b:\n    prices:\n      input: -1\n      output: 1\n", 4, `"-1" is no amount`},
		{"models:\n  a/b:\n    prices:\n      input: .inf\n      output: 1\n", 4, "no amount"},
		{"models:\n  a/b:\n    prices: {output: 1}\n", 2, "prices need input and output"},
		{"models:\n  a/b:\n    prices:\n      reasoning: 1\n", 4, `unknown field "reasoning"`},
		{"model: a/b\n---\nmodel: c/d\n", 3, "more than one document"},
		{"- model: a/b\n", 1, ""},
		{"model: a/b\n\tstream: on\n", 2, ""},
	} {
		c, err := load(t, tt.text)
		var fault *Error
		if !errors.As(err, &fault) || fault.Line != tt.line || !strings.Contains(fault.Text, tt.want) {
			t.Errorf("Load(%q) = %v, want line %d with %q", tt.text, err, tt.line, tt.want)
			continue
		}
		if strings.Contains(fault.Text, "\n") || fault.Hint() == "" {
			t.Errorf("Load(%q) = %q with hint %q, want one line and a hint", tt.text, fault.Text, fault.Hint())
		}
		if c.Model != "" || c.rows != nil {
			t.Errorf("Load(%q) gives half a file: %+v", tt.text, c)
		}
	}
}

func TestNothingToRead(t *testing.T) {
	for _, text := range []string{"", "# only words\n", "---\n# and a rule\n"} {
		if c, err := load(t, text); err != nil || c.Model != "" {
			t.Errorf("Load(%q) = %+v, %v, want nothing", text, c, err)
		}
	}
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	for _, path := range []string{"", absent} {
		if c, err := Load(path); err != nil || c.Path != path {
			t.Errorf("Load(%q) = %+v, %v, want nothing", path, c, err)
		}
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("Load of a folder = %v, want an error", err)
	}
}

func TestRetryForZeroIsNoRetries(t *testing.T) {
	if c, err := load(t, "retry_for: 0s\n"); err != nil || c.RetryFor >= 0 {
		t.Errorf("Load = %v, %v, want no retries", c.RetryFor, err)
	}
}

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		xdg, home, want string
	}{
		{"/x", "/h", "/x/skein/config.yaml"},
		{"", "/h", "/h/.config/skein/config.yaml"},
		{"relative", "/h", "/h/.config/skein/config.yaml"},
		{"", "", ""},
	} {
		env := map[string]string{"XDG_CONFIG_HOME": tt.xdg, "HOME": tt.home}
		if got := Path(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("Path with %q and %q = %q, want %q", tt.xdg, tt.home, got, tt.want)
		}
	}
}
