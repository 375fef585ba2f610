package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"skein/agent/model"
)

// prompt comes before the list of tools.
const prompt = `You can run nothing yourself: no command, no look into a file, no change. A program does that for you, when you call one of the tools below. To call a tool, end your reply with one line of this form, on its own, outside code fences:

TOOL_CALL {"name": "tool", "arguments": {"argument": "value"}}

It is valid JSON: line breaks inside a value are written \n, quotes \". Then stop: one call for each reply, also where other rules speak of several, and nothing after it. The answer comes in the next message, which begins with TOOL_RESULT; never write one yourself. To finish, answer without a call.

Tools, each with the JSON Schema of its arguments:
`

func describe(tools []model.Tool) (string, error) {
	var b bytes.Buffer
	b.WriteString(prompt)
	for _, t := range tools {
		fmt.Fprintf(&b, "\n%s: %s\n", t.Name, t.Description)
		if err := json.Compact(&b, t.Schema); err != nil {
			return "", fmt.Errorf("encode tool %s: its schema is no JSON: %w", t.Name, err)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// Render writes a call as [Parse] reads it.
func Render(c model.ToolCall) string {
	args := encode(c.Args)
	if object(c.Args) {
		args = c.Args
	}
	return callMark + ` {"name":` + encode(c.Name) + `,"arguments":` + args + `}`
}

// object reports whether s is a JSON object and nothing around it.
func object(s string) bool {
	return strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && json.Valid([]byte(s))
}

// encode gives a text as JSON with <, > and & as they are: models read it.
func encode(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
