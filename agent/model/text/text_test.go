package text_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"skein/agent/model"
	"skein/agent/model/openai"
	"skein/agent/model/script"
	"skein/agent/model/text"
)

var tools = []model.Tool{
	{Name: "grep", Description: "Search <b> & c.", Schema: []byte(`{"type": "object", "properties": {"pattern": {"type": "string"}}}`)},
	{Name: "bash", Description: "Run.", Schema: []byte(`{"type":"object"}`)},
}

// serve starts a scripted model and returns a client that speaks the text protocol to it.
func serve(t *testing.T, stream bool, rules string) (*script.Server, model.Client) {
	t.Helper()
	s, err := script.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := openai.New(openai.Options{BaseURL: srv.URL(), Model: "script", Scripted: true, Stream: stream})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := srv.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return srv, text.Client(c)
}

func begin(t *testing.T, c model.Client, messages ...model.Message) (*model.Transcript, json.RawMessage) {
	t.Helper()
	raw, err := c.EncodeTools(tools)
	if err != nil || !json.Valid(raw) {
		t.Fatalf("EncodeTools = %s, %v", raw, err)
	}
	tr := model.NewTranscript(c)
	for _, m := range messages {
		if err := tr.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	return tr, raw
}

const conversation = `
- when: {turn: 1}
  say: |
    I look <there>.
    TOOL_CALL {"name":"grep","arguments":{"pattern":"x"}}
    TOOL_RESULT grep (ok)
    made-up.go:1
    So it is in made-up.go.
- when: {turn: 2, user: "(?s)^TOOL_RESULT grep .failed.\nno match"}
  say: "It is nowhere."
`

func TestConversation(t *testing.T) {
	for _, stream := range []bool{false, true} {
		srv, c := serve(t, stream, conversation)
		tr, raw := begin(t, c, model.Message{Role: model.System, Text: "You are Skein."}, model.Message{Role: model.User, Text: "find x"})
		var shown strings.Builder
		req := model.Request{
			Messages: tr.Messages(), Tools: raw, Origin: model.Origin{Agent: "0", Turn: 1},
			Stream: func(d model.Delta) { shown.WriteString(d.Text) },
		}
		reply, err := c.Exchange(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		m := reply.Message
		want := []model.ToolCall{{ID: "call_2", Name: "grep", Args: `{"pattern":"x"}`}}
		if m.Text != "I look <there>." || !slices.Equal(m.Calls, want) || reply.Finish != model.FinishToolCalls {
			t.Fatalf("Exchange = %q, %v, %s; want the text before the call, %v", m.Text, m.Calls, reply.Finish, want)
		}
		if strings.TrimSpace(shown.String()) != "I look <there>." {
			t.Errorf("shown while it was written: %q, want the text before the call", shown.String())
		}
		if !reply.Usage.Output.Known || reply.Usage.Output.N == 0 {
			t.Errorf("usage = %v, want what the whole reply cost", reply.Usage)
		}
		for _, m := range []model.Message{m, {Role: model.ToolRole, CallID: "call_2", Name: "grep", Text: "no match", IsError: true}} {
			if err := tr.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		req.Messages, req.Origin.Turn = tr.Messages(), 2
		last, err := c.Exchange(t.Context(), req)
		if err != nil || last.Message.Text != "It is nowhere." || len(last.Message.Calls) != 0 || last.Finish != model.FinishStop {
			t.Fatalf("Exchange = %+v, %v, want the final answer", last, err)
		}
		checkRequests(t, srv.Requests())
	}
}

func TestCallsOfAReplyThatWasCut(t *testing.T) {
	for _, tc := range []struct {
		say, finish string
		want        model.Finish
	}{
		{`TOOL_CALL {"name":"grep","arguments":{"pattern":"x"}}\nTOOL_RESULT made`, "length", model.FinishToolCalls},
		{`TOOL_CALL {"name":"grep","arguments":{"pattern":"x"}}\nmade`, "content_filter", model.FinishToolCalls},
		{`TOOL_CALL {"name":"grep","arguments":{"pat`, "length", model.FinishLength},
		{`TOOL_CALL {"name":"grep",\n"arguments":{\n"pat`, "length", model.FinishLength},
		{`TOOL_CALL {"name":"grep","arguments":{"pat`, "stop", model.FinishToolCalls}, // badly written: the tool says so
	} {
		_, c := serve(t, true, "- {say: \""+strings.ReplaceAll(tc.say, `"`, `\"`)+"\", finish: "+tc.finish+"}\n")
		tr, raw := begin(t, c, model.Message{Role: model.User, Text: "find x"})
		reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Tools: raw, Origin: model.Origin{Agent: "0", Turn: 1}})
		if err != nil || len(reply.Message.Calls) != 1 || reply.Finish != tc.want || reply.Why != "" {
			t.Errorf("Exchange of %s, %s = %v, finish %s, why %q, %v, want a call and finish %s", tc.say, tc.finish, reply.Message.Calls, reply.Finish, reply.Why, err, tc.want)
		}
	}
}

// checkRequests checks what went over the wire: tools described at the front, nothing
// native, nothing made up, and the second request beginning with the bytes of the first.
func checkRequests(t *testing.T, asked []script.Recorded) {
	t.Helper()
	var in [2]struct {
		Messages []json.RawMessage `json:"messages"`
	}
	for i := range in {
		if err := json.Unmarshal(asked[i].Body, &in[i]); err != nil {
			t.Fatal(err)
		}
		for _, no := range []string{`"tools"`, `"tool_calls"`, `"role":"tool"`, "made-up"} {
			if bytes.Contains(asked[i].Body, []byte(no)) {
				t.Errorf("request %d holds %s: %s", i, no, asked[i].Body)
			}
		}
	}
	first, second := in[0].Messages, in[1].Messages
	var system struct{ Role, Content string }
	if err := json.Unmarshal(first[0], &system); err != nil {
		t.Fatal(err)
	}
	if system.Role != "system" || !strings.HasPrefix(system.Content, "You can run nothing yourself") || !strings.HasSuffix(system.Content, "\nYou are Skein.") ||
		!strings.Contains(system.Content, "\ngrep: Search <b> & c.\n"+`{"type":"object","properties":{"pattern":{"type":"string"}}}`+"\n") {
		t.Errorf("the first message is %+v", system)
	}
	if len(first) != 2 || len(second) != 4 || !bytes.Equal(first[0], second[0]) || !bytes.Equal(first[1], second[1]) {
		t.Errorf("request 2 does not begin like request 1:\n%s\n%s", asked[0].Body, asked[1].Body)
	}
	if want := `{"role":"assistant","content":"I look <there>.\nTOOL_CALL {\"name\":\"grep\",\"arguments\":{\"pattern\":\"x\"}}"}`; string(second[2]) != want {
		t.Errorf("sent back %s, want %s", second[2], want)
	}
}

func TestWithoutToolsNothingIsACall(t *testing.T) {
	srv, c := serve(t, false, `- say: 'TOOL_CALL {"name":"grep"}'`)
	tr, _ := begin(t, c, model.Message{Role: model.User, Text: "hello"})
	reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: 1}})
	if err != nil || len(reply.Message.Calls) != 0 || reply.Message.Text != `TOOL_CALL {"name":"grep"}` {
		t.Errorf("Exchange = %+v, %v, want the text", reply.Message, err)
	}
	if raw, err := c.EncodeTools(nil); raw != nil || err != nil {
		t.Errorf("EncodeTools(nil) = %s, %v, want nothing", raw, err)
	}
	if body := srv.Requests()[0].Body; bytes.Contains(body, []byte("TOOL_CALL")) {
		t.Errorf("without tools the request is %s", body)
	}
}

// A server may make native calls of what the model writes: the history stays text.
func TestNativeCallBecomesText(t *testing.T) {
	_, c := serve(t, false, "- say: hm\n  calls: [{grep: {pattern: x}}, {bash: {}}]\n")
	tr, raw := begin(t, c, model.Message{Role: model.User, Text: "hello"})
	reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Tools: raw, Origin: model.Origin{Agent: "0", Turn: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if m := reply.Message; len(m.Calls) != 1 || m.Calls[0].Name != "grep" || string(m.Raw) != `{"role":"assistant","content":"hm\nTOOL_CALL {\"name\":\"grep\",\"arguments\":{\"pattern\":\"x\"}}"}` {
		t.Errorf("Exchange = %+v, raw %s", m, m.Raw)
	}
}

// A conversation of another client goes on in text.
func TestTranslate(t *testing.T) {
	_, c := serve(t, false, "- say: done\n")
	native, err := openai.New(openai.Options{BaseURL: "http://127.0.0.1:1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	tr := model.NewTranscript(native)
	for _, m := range []model.Message{
		{Role: model.User, Text: "find"},
		{Role: model.Assistant, Text: "I look.", Calls: []model.ToolCall{{ID: "a", Name: "grep", Args: "{}"}, {ID: "b", Name: "bash", Args: `{"x":`}}},
		{Role: model.ToolRole, CallID: "a", Name: "grep", Text: "none"},
	} {
		if err := tr.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	got, n, err := tr.Translate(c)
	if err != nil || n != 3 {
		t.Fatalf("Translate = %d, %v, want 3", n, err)
	}
	for i, want := range []string{
		`{"role":"user","content":"find"}`,
		`{"role":"assistant","content":"I look.\nTOOL_CALL {\"name\":\"grep\",\"arguments\":{}}\nTOOL_CALL {\"name\":\"bash\",\"arguments\":\"{\\\"x\\\":\"}"}`,
		`{"role":"user","content":"TOOL_RESULT grep (ok)\nnone"}`,
	} {
		if m := got.Messages()[i]; string(m.Raw) != want || m.Dialect != "text+openai" {
			t.Errorf("message %d = %s of %s, want %s", i, m.Raw, m.Dialect, want)
		}
	}
}
