package text

import (
	"encoding/json"
	"regexp"
	"strings"

	"skein/agent/model"
)

const callMark = "TOOL_CALL"

// Parse finds the first call in a reply: it begins at reply[at] and ends before reply[end].
//
// A call begins at the beginning of a line, white space aside, in one of these forms:
//
//   - TOOL_CALL {json}, on one line or several; a colon after the mark is let pass;
//   - <tool_call>{json}</tool_call>, the closing tag may be missing;
//   - either of them in a code fence that is nothing else, or {json} alone in one that is
//     closed: a fence of json, tool_call or no language.
//
// The json is an object with name, a text, and arguments: an object, or a text that holds
// one. Behind a mark or tag everything is a call, so that the model is told what is wrong
// with it: JSON that cannot be read is the text of the arguments up to the end of its line,
// and an object with other fields is the arguments as a whole. A fence without mark or tag
// holds a call only if name and arguments are right and all there is.
//
// The mark inside a line, or without a brace after it, is no call; nor is anything inside
// the fences of other languages.
func Parse(reply string) (call model.ToolCall, at, end int, found bool) {
	for at < len(reply) {
		line, next := lineAt(reply, at)
		if f, ok := openFence(line); ok {
			if call, end, found = inFence(reply, next, f); found {
				return call, at, end, true
			}
			at = closed(reply, next, f)
			continue
		}
		if call, end, found = marked(reply, at); found {
			return call, at, end, true
		}
		at = next
	}
	return model.ToolCall{}, len(reply), len(reply), false
}

// lineAt returns the line that begins at a place, without its end, and where the next begins.
func lineAt(s string, at int) (line string, next int) {
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return s[at : at+n], at + n + 1
	}
	return s[at:], len(s)
}

var mark = regexp.MustCompile(`^[ \t]*(?:` + callMark + `:?[ \t]*|<tool_call>\s*)(\{)`)

// marked reads a call of the forms with a mark or a tag at a place where a line begins.
func marked(s string, at int) (call model.ToolCall, end int, found bool) {
	m := mark.FindStringSubmatchIndex(s[at:])
	if m == nil {
		return call, 0, false
	}
	begin := at + m[2]
	size, ok := objectAt(s[begin:])
	if !ok {
		line, _ := lineAt(s, begin)
		line, _, _ = strings.Cut(line, "</tool_call>")
		line = strings.TrimRight(line, " \t\r")
		return model.ToolCall{Name: nameIn(line), Args: line}, begin + len(line), true
	}
	end = begin + size
	call, _ = callOf(s[begin:end])
	if rest := strings.TrimLeft(s[end:], " \t\r\n"); strings.HasPrefix(rest, "</tool_call>") {
		end = len(s) - len(rest) + len("</tool_call>")
	}
	return call, end, true
}

// objectAt returns the size of the JSON object at the front of s.
func objectAt(s string) (int, bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	var o json.RawMessage
	if dec.Decode(&o) != nil {
		return 0, false
	}
	return int(dec.InputOffset()), true
}

var nameField = regexp.MustCompile(`"name"\s*:\s*"([^"\\]*)"`)

// nameIn finds the name in what was meant as a call, "" if there is none.
func nameIn(s string) string {
	if m := nameField.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// callOf makes a call of a JSON object; exact tells that it has the right fields and no
// others. If it has not, the whole object is the arguments: the tool will refuse them.
func callOf(object string) (call model.ToolCall, exact bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &fields) != nil {
		return model.ToolCall{Args: object}, false // an object always decodes
	}
	named := json.Unmarshal(fields["name"], &call.Name) == nil && call.Name != ""
	args, given := fields["arguments"]
	switch {
	case named && len(fields) == 1:
		call.Args = "{}"
		return call, false
	case !named || !given || len(fields) != 2:
		call.Args = object
		return call, false
	}
	if json.Unmarshal(args, &call.Args) == nil && string(args) != "null" {
		return call, true
	}
	call.Args = string(args)
	return call, strings.HasPrefix(call.Args, "{")
}
