package text

import (
	"strings"

	"skein/agent/model"
)

// A fence is the line that opens a block of code.
type fence struct {
	mark     string // the backticks or tildes
	language string
}

func openFence(line string) (fence, bool) {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return fence{line[:n], strings.ToLower(strings.TrimSpace(rest))}, true
		}
	}
	return fence{}, false
}

// mayCall reports whether a call may stand in a block of this language.
func (f fence) mayCall() bool {
	return f.language == "" || f.language == "json" || f.language == "tool_call"
}

// closes reports whether a line ends the block that f opened.
func (f fence) closes(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(f.mark) && strings.Trim(line, f.mark[:1]) == ""
}

// closed returns where the text goes on after the block whose first line begins at a place.
func closed(s string, at int, f fence) int {
	for at < len(s) {
		line, next := lineAt(s, at)
		if at = next; f.closes(line) {
			return at
		}
	}
	return at
}

// inFence reads a call that a block consists of; it ends with the block.
func inFence(s string, at int, f fence) (call model.ToolCall, end int, found bool) {
	if !f.mayCall() {
		return call, 0, false
	}
	begin := len(s) - len(strings.TrimLeft(s[at:], " \t\r\n"))
	if lineBegin := strings.LastIndexByte(s[:begin], '\n') + 1; lineBegin >= at {
		if call, end, found = marked(s, lineBegin); found {
			if after, ok := f.endAt(s, end); ok {
				end = after
			}
			return call, end, true
		}
	}
	if begin == len(s) || s[begin] != '{' {
		return call, 0, false
	}
	size, ok := objectAt(s[begin:])
	if !ok {
		return call, 0, false
	}
	if call, ok = callOf(s[begin : begin+size]); !ok {
		return call, 0, false
	}
	end, ok = f.endAt(s, begin+size)
	return call, end, ok
}

// endAt returns the end of the line that closes the block, if it is what comes next.
func (f fence) endAt(s string, at int) (int, bool) {
	at = len(s) - len(strings.TrimLeft(s[at:], " \t\r\n"))
	line, _ := lineAt(s, at)
	if !f.closes(line) {
		return 0, false
	}
	return at + len(strings.TrimRight(line, " \t\r")), true
}
