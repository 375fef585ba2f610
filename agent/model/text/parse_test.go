package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"skein/agent/model"
	"skein/agent/model/text"
)

const good = `{"name": "grep", "arguments": {"pattern": "a}b", "n": 1}}`

func TestParse(t *testing.T) {
	grep := model.ToolCall{Name: "grep", Args: `{"pattern": "a}b", "n": 1}`}
	for _, tt := range []struct {
		name, before, call, after string // the reply's parts
		want                      model.ToolCall
	}{
		{"mark", "", "TOOL_CALL " + good, "", grep},
		{"prose before, made-up result after", "I look.\n\n", "TOOL_CALL " + good, "\nTOOL_RESULT grep (ok)\na.go:1\nSo it is in a.go.", grep},
		{"two calls", "", "TOOL_CALL " + good, "\nTOOL_CALL {\"name\":\"bash\",\"arguments\":{}}", grep},
		{"text right behind it", "", "TOOL_CALL " + good, " and then I will", grep},
		{"white space and a colon", "", "  TOOL_CALL:\t" + good, "\r\n", grep},
		{"on several lines", "", "TOOL_CALL {\n  \"name\": \"grep\",\n  \"arguments\": {\"pattern\": \"```\"}\n}", "\n```", model.ToolCall{Name: "grep", Args: `{"pattern": "` + "```" + `"}`}},
		{"arguments as a text", "", `TOOL_CALL {"name":"grep","arguments":"{\"pattern\":\"x\"}"}`, "", model.ToolCall{Name: "grep", Args: `{"pattern":"x"}`}},
		{"no arguments", "", `TOOL_CALL {"name":"list_files"}`, "", model.ToolCall{Name: "list_files", Args: "{}"}},
		{"arguments under another name", "", `TOOL_CALL {"name":"grep","parameters":{}}`, "", model.ToolCall{Name: "grep", Args: `{"name":"grep","parameters":{}}`}},
		{"no name", "", `TOOL_CALL {"pattern":"x"}`, "", model.ToolCall{Args: `{"pattern":"x"}`}},
		{"malformed", "", `TOOL_CALL {"name":"bash","arguments":{"command":"ls}`, "\nTOOL_RESULT bash (ok)\nx\"}}", model.ToolCall{Name: "bash", Args: `{"name":"bash","arguments":{"command":"ls}`}},
		{"malformed for a line break", "", `TOOL_CALL {"name": "bash", "arguments": {"command": "ls`, "\npwd\"}}", model.ToolCall{Name: "bash", Args: `{"name": "bash", "arguments": {"command": "ls`}},
		{"malformed, nothing to read", "", "TOOL_CALL {", "\n", model.ToolCall{Args: "{"}},
		{"tag", "Now:\n", "<tool_call>\n" + good + "\n</tool_call>", "\n<tool_response>\nx\n</tool_response>", grep},
		{"tag on one line", "", "<tool_call>" + good + "</tool_call>", "<tool_call>{}</tool_call>", grep},
		{"tag left open", "", "<tool_call>" + good, "\nmore", grep},
		{"tag, malformed", "", "<tool_call>{\"name\":\"grep\",}", "</tool_call>", model.ToolCall{Name: "grep", Args: `{"name":"grep",}`}},
		{"fence of json", "So:\n", "```json\n" + good + "\n```", "\nDone.", grep},
		{"fence of no language", "", "```\n" + good + "\n```", "\n", grep},
		{"fence of tildes", "", "~~~ JSON\n" + good + "\n~~~~", "", grep},
		{"mark in a fence", "", "```\nTOOL_CALL " + good + "\n```", "\nTOOL_RESULT", grep},
		{"mark in a fence left open", "", "```tool_call\nTOOL_CALL " + good, "\nmore", grep},
		{"tag in a fence", "", "```json\n<tool_call>" + good + "</tool_call>\n```", "", grep},
		{"after the fence of another language", "```sh\nTOOL_CALL {}\n```\n", "TOOL_CALL " + good, "", grep},
		{"after a fence of json that is no call", "```json\n{\"name\":\"x\"}\n```\n", "TOOL_CALL " + good, "", grep},
	} {
		got, at, end, found := text.Parse(tt.before + tt.call + tt.after)
		if !found || got != tt.want || at != len(tt.before) || end != len(tt.before)+len(tt.call) {
			t.Errorf("%s: Parse = %+v from %d to %d, %v; want %+v from %d to %d", tt.name, got, at, end, found, tt.want, len(tt.before), len(tt.before)+len(tt.call))
		}
	}
}

func TestParseFindsNoCall(t *testing.T) {
	for _, reply := range []string{
		"",
		"It is done.",
		"A call is written TOOL_CALL " + good,
		"`TOOL_CALL " + good + "`",
		"> TOOL_CALL " + good,
		"- TOOL_CALL " + good,
		"TOOL_CALL",
		"TOOL_CALL is the mark",
		"TOOL_CALLS " + good,
		"TOOL_CALL\n" + good,
		"tool_call " + good,
		"<tool_call> is a tag",
		"see <tool_call>" + good + "</tool_call>",
		good,
		"```python\nTOOL_CALL " + good + "\n```",
		"```markdown\n" + good + "\n```",
		"````md\n```json\n" + good + "\n```\n````",
		"```go\nTOOL_CALL " + good, // left open
		"```json\n" + good,         // left open
		"```json\n" + good + "\nand more\n```",
		"```json\n[" + good + "]\n```",
		"```json\n{\"name\": \"skein\", \"version\": \"1.0\"}\n```",
		"```json\n{\"name\": \"a\", \"arguments\": [1]}\n```",
		"```json\n{\"name\": \"a\", \"arguments\": {}, \"id\": 1}\n```",
		"```json\n{\"name\": 1, \"arguments\": {}}\n```",
		"```\n\n```",
		"```json\n",
	} {
		if got, at, end, found := text.Parse(reply); found || at != len(reply) || end != len(reply) {
			t.Errorf("Parse(%q) = %+v, %d, %d, %v; want no call", reply, got, at, end, found)
		}
	}
}

// A call that was found stands in the part that is kept, the only one, and is found there
// again: what came behind it is gone.
func FuzzParse(f *testing.F) {
	f.Add("TOOL_CALL " + good + "\nTOOL_RESULT")
	f.Add("a\n<tool_call>" + good + "</tool_call>x")
	f.Add("```json\n" + good + "\n```\nTOOL_CALL {")
	f.Add("```\nTOOL_CALL {\n}\n```")
	f.Add("TOOL_CALL {\"name\":\"x\"\n}")
	f.Fuzz(func(t *testing.T, reply string) {
		call, at, end, found := text.Parse(reply)
		if at < 0 || at > end || end > len(reply) || !found && at != len(reply) {
			t.Fatalf("Parse(%q) = %d, %d, %v", reply, at, end, found)
		}
		if !found {
			return
		}
		again, at2, end2, found2 := text.Parse(reply[:end])
		if !found2 || again != call || at2 != at || end2 != end {
			t.Fatalf("Parse(%q) = %+v, %d, %d; of the part that is kept %+v, %d, %d, %v", reply, call, at, end, again, at2, end2, found2)
		}
		if _, _, _, found := text.Parse(reply[:at]); found {
			t.Fatalf("Parse(%q): there is a call before the first one", reply)
		}
	})
}

// What is rendered is read as the same call, whatever stands around it.
func FuzzRender(f *testing.F) {
	f.Add("grep", `{"pattern": "a"}`, "I look.\n", "\nTOOL_RESULT")
	f.Add("", "", "", "")
	f.Add("x", `{"a":1`, "", "}")
	f.Add("x", ` {} `, "```go\n", "")
	f.Add("<a>&\"", "null", "a\n\n", "</tool_call>")
	f.Fuzz(func(t *testing.T, name, args, before, after string) {
		if !utf8.ValidString(name) || !utf8.ValidString(args) || name == "" {
			t.Skip("no provider sends these")
		}
		if _, _, _, found := text.Parse(before + "\n"); found || strings.ContainsAny(before, "`~") {
			t.Skip("there is a call before, or a fence")
		}
		want := model.ToolCall{Name: name, Args: args}
		call := text.Render(want)
		reply := before + "\n" + call + "\n" + after
		got, at, end, found := text.Parse(reply)
		if !found || got != want {
			t.Fatalf("Parse(%q) = %+v, %v, want %+v", reply, got, found, want)
		}
		if begin := len(before) + 1; strings.TrimSpace(reply[at:end]) != call && strings.TrimSpace(reply[at:end]) != call+"\n</tool_call>" || end < begin {
			t.Fatalf("Parse(%q) keeps %q, want %q", reply, reply[at:end], call)
		}
	})
}
