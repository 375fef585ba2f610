package script_test

import (
	"strings"
	"testing"

	"skein/agent/model/script"
)

func TestParseNamesTheLine(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", "line 1: the script has no rules"},
		{"only a comment", "# nothing\n", "line 1: the script has no rules"},
		{"no list", "say: done\n", "line 1: a script is a list of rules"},
		{"two documents", "- say: a\n---\n- say: b\n", "line 3: a script is one document"},
		{"unknown field", "- say: a\n- when: {turn: 1}\n  sya: b\n", "line 3: unknown field \"sya\""},
		{"unknown condition", "- when: {agnt: \"0\"}\n  say: a\n", "line 1: unknown field \"agnt\""},
		{"duplicate field", "- say: a\n  say: b\n", "line 2: mapping key \"say\" already defined"},
		{"wrong type", "- say: a\n- when: {turn: first}\n  say: b\n", "line 2: "},
		{"bad YAML", "- say: a\n- when: {turn: 1\n", "line "},
		{"bad pattern", "- say: a\n-\n  when:\n    result: '('\n  say: b\n", "line 4: error parsing regexp"},
		{"bad glob", "- when: {agent: '[0'}\n  say: a\n", "line 1: agent \"[0\" is no glob"},
		{"agent map", "- when: {agent: {a: b}}\n  say: a\n", "line 1: agent is an ordinal"},
		{"turn zero", "- say: a\n- when: {turn: 0}\n  say: b\n", "line 2: turns are counted from 1"},
		{"nothing said", "- say: a\n- when: {turn: 1}\n", "line 2: the rule answers nothing"},
		{"null rule", "- say: a\n-\n", "line 2: the rule answers nothing"},
		{"say and status", "- say: a\n  status: 500\n", "line 1: a rule either replies or fails"},
		{"call and calls", "- call: {a: {}}\n  calls: [{b: {}}]\n", "line 1: call and calls exclude"},
		{"two tools in one call", "- call: {a: {}, b: {}}\n", "line 1: a call names one tool, this one 2"},
		{"text arguments", "- call: {a: no map}\n", "line 1: call a: arguments are a map"},
		{"not a JSON number", "- call: {a: {n: .inf}}\n", "line 1: call a: +Inf is no number"},
		{"raw without name", "- call_raw: {arguments: x}\n", "line 1: call_raw has no name"},
		{"bad status", "- status: 99\n", "line 1: status 99"},
		{"retry without status", "- say: a\n  retry_after: 2\n", "line 1: retry_after needs a status"},
		{"two retry times", "- {status: 429, retry_after: 2, retry_after_date: 2}\n", "line 1: retry_after and retry_after_date exclude"},
		{"negative slowness", "- say: a\n  slow: -1s\n", "line 1: slow -1s is negative"},
		{"negative split", "- say: a\n  split: -1\n", "line 1: split -1 is negative"},
		{"negative cut", "- say: a\n  cut: -1\n", "line 2: cut is a number of bytes, or true"},
		{"cut of words", "- say: a\n  cut: here\n", "line 2: cut is a number of bytes, or true"},
		{"garbage and body", "- {garbage: true, body: x}\n", "line 1: garbage and body exclude"},
		{"usage of a fault", "- status: 500\n  usage: {input: 3}\n", "line 1: finish and usage belong"},
		{"bad latency", "- say: a\n  latency: soon\n", "line 2: "},
		{"negative latency", "- say: a\n  latency: -1s\n", "line 1: latency -1s is negative"},
		{"negative usage", "- say: a\n  usage: {output: -1}\n", "line 1: usage -1 is negative"},
		{"group twice", "- when: {user: '(?P<a>x)', result: '(?P<a>y)'}\n  say: a\n", "line 1: two groups are named \"a\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := script.Parse([]byte(tc.in))
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Fatalf("Parse(%q) = %v, want %q…", tc.in, err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("Parse(%q) = %q, want one line", tc.in, err)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	_, err := script.Load("testdata/absent.yaml")
	if err == nil || !strings.HasPrefix(err.Error(), "load script: open testdata/absent.yaml") {
		t.Errorf("Load(absent) = %v, want the path named", err)
	}
}
