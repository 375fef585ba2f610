package ignore_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/tools/search/ignore"
)

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

func git(t *testing.T, dir string, stdin string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "core.excludesFile=/dev/null"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && args[0] == "check-ignore" {
		err = nil // none of the paths is ignored
	}
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return out
}

// tree is what the rules are tried on; folders end with a slash. It has names that patterns
// can go wrong on.
var tree = []string{
	"a/", "a/b", "a/x/", "a/x/b", "a/x/y/", "a/x/y/b", "a/Xb", "a/a/", "a/a/a/", "a/a/a/a", "a/c/", "a/c/d",
	"b", "a.log", "x.log/", "x.log/y", "keep.log", "sub/", "sub/a.log", "sub/b/", "sub/b/a.log", "sub/build/", "sub/build/x",
	"build/", "build/x", "doc/", "doc/a.txt", "doc/x/", "doc/x/a.txt", "doc/x/y/", "doc/x/y/a.txt", "foo/", "foo/bar", "foo/foo", "x/", "x/foo/", "x/foo/bar", "x/.hidden",
	"#x", "!x", "x ", " x", "a b", "[x]", "a*b", "aXb", "é", "dir/", "dir/é", "a]b", "a-b", "a!b", "a^b", "0", "Z", "z", "\\x", "a\\", "ab", "abc", "aab", "aa", "[a", "a[", "-", "]", ".git2",
}

// oracle asks git what rules in the top folder ignore of the tree.
type oracle struct {
	t   *testing.T
	dir string
}

func newOracle(t *testing.T) oracle {
	_, err := exec.LookPath("git")
	need(t, err == nil, "needs git")
	o := oracle{t, t.TempDir()}
	git(t, o.dir, "", "init", "-q")
	for _, name := range tree {
		var err error
		if path := filepath.Join(o.dir, name); strings.HasSuffix(name, "/") {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o oracle) ignored(rules string) map[string]bool {
	if err := os.WriteFile(filepath.Join(o.dir, ".gitignore"), []byte(rules), 0o644); err != nil {
		o.t.Fatal(err)
	}
	var ask strings.Builder
	for _, name := range tree {
		ask.WriteString(strings.TrimSuffix(name, "/") + "\x00")
	}
	out := git(o.t, o.dir, ask.String(), "check-ignore", "-z", "--stdin", "--no-index")
	got := map[string]bool{}
	for p := range bytes.SplitSeq(out, []byte{0}) {
		got[string(p)] = true
	}
	return got
}

// ours is what git does with one file of rules: a path below an ignored folder is ignored.
func ours(r ignore.Rules, path string) bool {
	dir := strings.HasSuffix(path, "/")
	path = strings.TrimSuffix(path, "/")
	for i := range path {
		if path[i] == '/' {
			if ignored, _ := r.Match(path[:i], true); ignored {
				return true
			}
		}
	}
	ignored, _ := r.Match(path, dir)
	return ignored
}

// differences compares the two for the whole tree.
func (o oracle) differences(rules string, report func(string, ...any)) {
	want, r := o.ignored(rules), ignore.Parse(rules)
	for _, name := range tree {
		if got := ours(r, name); got != want[strings.TrimSuffix(name, "/")] {
			report("rules %q: %q ignored = %v, want %v as git has it", rules, name, got, !got)
		}
	}
}

func TestMatchAsGit(t *testing.T) {
	o := newOracle(t)
	for _, rules := range []string{
		"", "\n\n", "a", "a/", "/a", "/a/", "*.log", "*.log\n!keep.log", "!keep.log\n*.log", "build/", "/build/", "sub/build", "sub/build/",
		"doc/*.txt", "doc/**/*.txt", "doc/**", "**/foo", "**/foo/bar", "a/**/b", "a/**", "**", "**/", "*", "/*", "*/", "*\n!a\n!a/\n", "/*\n!/a", "!a",
		"#x", "\\#x", "\\!x", "!x", "x ", "x\\ ", "a b", "  a", "[x]", "\\[x\\]", "[[]x]", "a\\*b", "a*b", "a?b", "a[!/]b", "a[X/]b", "[a-c]", "[!a-c]", "[^a-c]", "[]]", "a[]]b", "a[]-]b",
		"[[:digit:]]", "[[:upper:]]", "[[:nosuch:]]", "[[:alpha:]-z]", "[z-a]", "[a", "a[", "\\", "a\\", "\\x", "\\\\x", "?", "??", "a.*", "*a*b*", "a**b", "**b", "a**", "a/b/", "a//b", "/", "//", "***", "a/***/b",
		"a\r\nb\r\n", "\uFEFFa\n", "x/", "foo/*\n!foo/bar", "foo\n!foo/bar", ".*", "x/.hidden", "/**/foo", "a/**/**/b", "**/**/b", "\\a", "[\\a]", "[a\\]]", "a\\/b", "doc/*/a.txt", "doc/*/*", "[a-]b", "a[-a]b",
	} {
		o.differences(rules, t.Errorf)
	}
}

// undecided are rules of which git 2.39 itself says now this, now that: whether the "**" in
// "a**/b" spans folders depends there on where two strings lie in memory (wildmatch compares
// a pointer into the pattern with one into the text). gitignore(5) takes such a "**" for a
// "*", and so do we.
var undecided = regexp.MustCompile(`[^/]\*\*+(\\?/|/?$)`)

func TestAnyRulesAsGit(t *testing.T) {
	o := newOracle(t)
	pattern := rapid.StringOfN(rapid.SampledFrom([]rune("aabx***//?![]-^\\ #.")), 1, 8, -1).Filter(func(rule string) bool {
		return !strings.Contains(strings.TrimSuffix(rule, "/"), "/") || !undecided.MatchString(rule)
	})
	rapid.Check(t, func(t *rapid.T) {
		o.differences(strings.Join(rapid.SliceOfN(pattern, 1, 3).Draw(t, "rules"), "\n"), t.Fatalf)
	})
}

// Patterns are a stranger's text: none may take long.
func TestMatchIsFast(t *testing.T) {
	r := ignore.Parse(strings.Repeat("a*", 50) + "b\n" + strings.Repeat("**/a/", 50) + "b\n")
	if ignored, decided := r.Match(strings.Repeat("a/", 500)+strings.Repeat("a", 5000), false); ignored || decided {
		t.Errorf("Match = %v, %v, want no match", ignored, decided)
	}
}
