package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"skein/agent/model"
)

// However a reply comes in pieces: what is shown is what stands before the call, no more at
// any time, and in the end all of it.
func TestShowerShowsWhatIsNoCall(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"word ", "\n", "TOOL", "_CALL", "TOOL_CALL ", "TOOL_CALLS", `{"name":"x"}`, `{"name":"x","arguments":{}}`, "```", "```json\n", "```go\n", "~~~", "<tool_", "call>", "  ", "é", "`",
	})
	rapid.Check(t, func(t *rapid.T) {
		reply := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
		_, at, _, _ := Parse(reply)
		shown := ""
		s := &shower{to: func(d model.Delta) { shown += d.Text }}
		for rest := reply; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			s.add(model.Delta{Text: rest[:n]})
			rest = rest[n:]
			if !strings.HasPrefix(reply[:at], shown) {
				t.Fatalf("of %q was shown %q, want no more than %q", reply, shown, reply[:at])
			}
		}
		s.end(reply[:at])
		if shown != reply[:at] {
			t.Fatalf("of %q was shown %q, want %q", reply, shown, reply[:at])
		}
	})
}

func TestShowerShowsAtOnce(t *testing.T) {
	shown := ""
	s := &shower{to: func(d model.Delta) { shown += d.Text + d.Reasoning }}
	for _, tt := range []struct {
		d    model.Delta
		want string
	}{
		{model.Delta{Reasoning: "hm. "}, "hm. "},
		{model.Delta{Text: "I l"}, "I l"},
		{model.Delta{Text: "ook.\nTOO"}, "ook.\n"},
		{model.Delta{Text: " bad"}, "TOO bad"},
		{model.Delta{Text: "\n```go\nTOOL_CALL {}"}, "\n```go\nTOOL_CALL {}"},
		{model.Delta{Text: "\n```\nx"}, "\n```\nx"},
	} {
		before := shown
		s.add(tt.d)
		if got := strings.TrimPrefix(shown, before); got != tt.want {
			t.Errorf("add(%q) showed %q, want %q", tt.d, got, tt.want)
		}
	}
}
