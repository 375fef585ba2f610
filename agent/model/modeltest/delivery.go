package modeltest

import (
	"strings"
	"testing"

	"skein/agent/model"
)

// delivery checks that how a body comes changes nothing about what it says.
func delivery(t *testing.T, m *mode) {
	const rule = `
  say: "Grüße — 日本語 🎈, e\u0301 & <b>"
  reasoning: "さて 🤔"
  call: {write_file: {path: "ü.txt", content: "zażółć 🦆\n"}}
`
	ways := []string{
		"split: 1", "split: 2", "split: 3", "split: 7", "crlf: true", "keepalive: true", "slow: 1ms",
		"split: 1, crlf: true, keepalive: true", "split: 4, crlf: true", "latency: 5ms, keepalive: true",
	}
	rules := ""
	for _, way := range ways {
		rules += "- when: {user: '^" + way + "$'}" + rule + "  " + strings.ReplaceAll(way, ", ", "\n  ") + "\n"
	}
	_, c := m.serve(t, rules+"- when: {turn: 1}"+rule)
	ordinary, _, err := ask(t.Context(), t, c, "as usual", nil)
	if err != nil {
		t.Fatalf("Exchange = %v", err)
	}
	const text = "Grüße — 日本語 🎈, e\u0301 & <b>"
	if got := ordinary.Message; got.Text != text || len(got.Calls) != 1 || got.Calls[0].Args != `{"path":"ü.txt","content":"zażółć 🦆\n"}` {
		t.Fatalf("Exchange = %q, %v, want the text and one call", got.Text, got.Calls)
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			var h heard
			reply, _, err := ask(t.Context(), t, c, way, &h)
			if err != nil {
				t.Fatalf("Exchange = %v", err)
			}
			if diff := different(ordinary, reply); diff != "" {
				t.Errorf("Exchange: %s", diff)
			}
			h.check(t, m, text)
			if strings.ContainsRune(h.text.String()+h.reasoning.String(), '\uFFFD') {
				t.Errorf("the deltas have cut characters: %q", h.text.String())
			}
		})
	}
}

// megabytes checks that long replies come whole, and that long arguments do. The request is
// small: the rules repeat what it says.
func megabytes(t *testing.T, m *mode) {
	const unit, times, callTimes = 64 << 10, 80, 16
	refs := strings.Repeat("${1}", times)
	_, c := m.serve(t, `
- {when: {user: '(?s)^say (.*)$'}, say: "`+refs+`"}
- {when: {user: '(?s)^write (.*)$'}, call: {write_file: {content: "`+refs[:callTimes*len("${1}")]+`"}}}
`)
	word := strings.Repeat("0123456789abcde ", unit/16)
	text := strings.Repeat(word, times)
	var h heard
	reply, _, err := ask(t.Context(), t, c, "say "+word, &h)
	if err != nil || reply.Message.Text != text {
		t.Errorf("Exchange = %d bytes, %v, want %d", len(reply.Message.Text), err, len(text))
	}
	h.check(t, m, text)
	want := `{"content":"` + strings.Repeat(word, callTimes) + `"}`
	reply, _, err = ask(t.Context(), t, c, "write "+word, nil)
	if err != nil || len(reply.Message.Calls) != 1 || reply.Message.Calls[0].Args != want {
		t.Errorf("Exchange = %d calls, %v, want one with %d bytes of arguments", len(reply.Message.Calls), err, len(want))
	}
}

// foreign checks that a conversation with another provider can be carried on: its calls
// have ids that no rule of this protocol foresaw, its results may have failed.
func foreign(t *testing.T, m *mode) {
	_, c := m.serve(t, "- {when: {result: 'ok\\nno such file'}, say: done}\n")
	tr := model.NewTranscript(c)
	for _, msg := range []model.Message{
		{Role: model.System, Text: "be brief"},
		{Role: model.User, Text: "look"},
		{Role: model.Assistant, Calls: []model.ToolCall{
			{ID: "call_0.1_2_1", Name: "bash", Args: `{"command":"ls"}`},
			{ID: "call_0.1_2_2", Name: "bash", Args: `{"command":`},
		}},
		{Role: model.ToolRole, CallID: "call_0.1_2_1", Name: "bash", Text: "ok"},
		{Role: model.ToolRole, CallID: "call_0.1_2_2", Name: "bash", Text: "no such file", IsError: true},
		{Role: model.Assistant, Text: ""},
		{Role: model.User, Text: "and?"},
		{Role: model.Assistant, Calls: []model.ToolCall{{ID: "call_0.1_3_1", Name: "list_files", Args: `{}`}}},
		{Role: model.ToolRole, CallID: "call_0.1_3_1", Name: "list_files", Text: "ok"},
		{Role: model.User, Text: "no such file"},
	} {
		add(t, tr, msg)
	}
	// The last results are followed by a user's message: both are seen.
	if _, err := c.Exchange(t.Context(), turn(tr, 3)); err == nil || !strings.Contains(err.Error(), "no rule") {
		t.Errorf("Exchange = %v, want a conversation that the server reads and no rule fits", err)
	}
	shorter := model.NewTranscript(c, tr.Messages()[:5]...)
	if reply, err := c.Exchange(t.Context(), turn(shorter, 2)); err != nil || reply.Message.Text != "done" {
		t.Errorf("Exchange = %q, %v, want done", reply.Message.Text, err)
	}
}
