package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"skein/agent/model"
	"skein/agent/model/script"
)

// prefix checks the property that provider caches live from: whatever is said, a request
// begins with the bytes of the last one, and the cache finds it again.
func prefix(t *testing.T, m *mode) {
	srv, c := m.serve(t, `
- when: {user: "^one"}
  call: {grep: {pattern: "a<b>&c", context: 2}}
  reasoning: "I search & find."
- when: {user: "^two"}
  calls: [{read_file: {path: a.go}}, {read_file: {path: "ü.go"}}]
- when: {user: "^three"}
  say: ""
- say: "<done> & dusted"
`)
	tools, err := c.EncodeTools([]model.Tool{
		{Name: "grep", Description: "finds <a> & b", Schema: []byte(`{"type":"object"}`)},
		{Name: "read_file", Description: "reads", Schema: []byte(`{"type":"object"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<b>&amp;</b>", "\u2028 \x00 \\ \"", "\xff\xfe", "a\r\nb", `{"cache_control":{}}`}))
		tr := model.NewTranscript(c)
		add(rt, tr, model.Message{Role: model.System, Text: text.Draw(rt, "system")})
		var before *script.Recorded
		for n := range rapid.IntRange(1, 5).Draw(rt, "turns") {
			kind := rapid.SampledFrom([]string{"one ", "two ", "three ", "four "}).Draw(rt, "kind")
			add(rt, tr, model.Message{Role: model.User, Text: kind + text.Draw(rt, "user")})
			req := turn(tr, n+1)
			req.Tools = tools
			reply, err := c.Exchange(t.Context(), req)
			if err != nil {
				rt.Fatalf("Exchange = %v", err)
			}
			asked := srv.Requests()
			now := asked[len(asked)-1]
			if before != nil {
				begins(rt, before.Body, now.Body)
				if want := (before.Input + before.Output) / 64 * 64; now.Hit < want {
					rt.Fatalf("cache hit %d tokens, want %d:\n%s\n%s", now.Hit, want, before.Body, now.Body)
				}
			}
			before = &now
			answer(rt, tr, reply, text.Draw(rt, "result"))
		}
	})
}

// A mark for the cache moves with the conversation's end, and is no part of any message.
var cacheMark = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// begins checks that a request begins with all that the one before it said, byte for byte:
// the tools, the system's message, and each message. The last of them may go on where it
// ended, since some protocols join neighbours.
func begins(t fataler, before, now []byte) {
	t.Helper()
	type request struct {
		Tools    json.RawMessage   `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Messages []json.RawMessage `json:"messages"`
	}
	var a, b request
	for body, into := range map[*[]byte]*request{&before: &a, &now: &b} {
		if err := json.Unmarshal(cacheMark.ReplaceAll(*body, nil), into); err != nil {
			t.Fatalf("the body %s is no JSON: %v", *body, err)
		}
	}
	if !bytes.Equal(a.Tools, b.Tools) || !bytes.Equal(a.System, b.System) || len(b.Messages) < len(a.Messages) {
		t.Fatalf("the body\n%s\ndoes not begin like the one before\n%s", now, before)
	}
	for i, old := range a.Messages {
		if i == len(a.Messages)-1 {
			old = bytes.TrimSuffix(old, []byte("]}"))
		}
		if !bytes.HasPrefix(b.Messages[i], old) {
			t.Fatalf("message %d is now\n%s\nand was\n%s", i, b.Messages[i], old)
		}
	}
}

// accounting checks that usage is what the server counted, that reply and results are found
// in the cache, and that another agent that starts from the same messages finds them too.
func accounting(t *testing.T, m *mode) {
	srv, c := m.serve(t, `
- when: {agent: "0", turn: 1}
  call: {bash: {command: ls}}
  reasoning: "Let me look."
  usage: {input: 462, output: 186, reasoning: 6}
- when: {agent: "0", turn: 2}
  say: done
  usage: {input: 4409, output: 2}
- when: {agent: "0.1"}
  say: done too
  usage: {input: 4591}
`)
	tools, err := c.EncodeTools([]model.Tool{{Name: "bash", Description: "runs <a> & b", Schema: []byte(`{"type":"object"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(tr *model.Transcript, agent string, turn int) model.Reply {
		t.Helper()
		reply, err := c.Exchange(t.Context(), model.Request{
			Messages: tr.Messages(), Tools: tools, MaxTokens: 8192, Origin: model.Origin{Agent: agent, Turn: turn},
		})
		if err != nil {
			t.Fatalf("Exchange = %v", err)
		}
		return reply
	}
	tr := model.NewTranscript(c)
	add(t, tr, model.Message{Role: model.System, Text: "system"})
	add(t, tr, model.Message{Role: model.User, Text: "find it"})
	first := ask(tr, "0", 1)
	m.usage(t, first.Usage, 462, 0, 186, 6)
	answer(t, tr, first, "a.go")
	second := ask(tr, "0", 2)
	m.usage(t, second.Usage, 4409, 640, 2, 0) // 462 + 186, rounded down to 64

	child := model.NewTranscript(c, tr.Messages()...)
	add(t, child, model.Message{Role: model.User, Text: "a task"})
	ask(child, "0.1", 1)
	for i, want := range []int64{0, 640, 4352} { // 4409 rounded down to 64
		if got := srv.Requests()[i].Hit; got != want {
			t.Errorf("request %d hit %d tokens, want %d", i+1, got, want)
		}
	}
}

// usage checks a reply's counters: what the protocol does not tell is unknown, not zero.
func (m *mode) usage(t *testing.T, got model.Usage, prompt, hit, output, reasoning int64) {
	t.Helper()
	var want model.Usage
	want.Output = model.Tokens(output)
	switch {
	case m.dialect.write: // the whole prompt is cached, what was not there is written
		want.CacheRead, want.CacheWrite, want.Input = model.Tokens(hit), model.Tokens(prompt-hit), model.Tokens(0)
	case m.dialect.cache:
		want.CacheRead, want.Input = model.Tokens(hit), model.Tokens(prompt-hit)
	default:
		want.Input = model.Tokens(prompt)
	}
	if m.dialect.reasoning {
		want.Reasoning = model.Tokens(reasoning)
	}
	if got != want {
		t.Errorf("usage = %+v, want %+v", got, want)
	}
}

// parallel checks that one client serves many agents at once, each with its own reply.
func parallel(t *testing.T, m *mode) {
	rules := ""
	for i := range 8 {
		rules += fmt.Sprintf("- {when: {agent: \"0.%d\"}, say: \"reply %d\", latency: %dms}\n", i, i, 40-5*i)
	}
	_, c := m.serve(t, rules)
	raw, err := c.Encode(model.Message{Role: model.User, Text: "who am I?"})
	if err != nil {
		t.Fatal(err)
	}
	history := []model.Message{{Role: model.User, Text: "who am I?", Raw: raw}}
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			origin := model.Origin{Agent: fmt.Sprintf("0.%d", i), Turn: 1}
			reply, err := c.Exchange(t.Context(), model.Request{Messages: history, Origin: origin})
			if want := fmt.Sprintf("reply %d", i); err == nil && reply.Message.Text != want {
				err = fmt.Errorf("agent %s got %q, want %q", origin.Agent, reply.Message.Text, want)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Errorf("Exchange = %v", err)
	}
}
