package modeltest

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"skein/agent/model"
	"skein/agent/model/script"
)

// prefix checks the property that provider caches live from: whatever is said, a request's
// body begins with all of the last one's but its end, and the cache finds it again.
func prefix(t *testing.T, connect Connect) {
	srv, c := Serve(t, connect, `
- when: {user: "^one"}
  call: {grep: {pattern: "a<b>&c", context: 2}}
  reasoning: "I search & find."
- when: {user: "^two"}
  calls: [{read_file: {path: a.go}}, {read_file: {path: "ü.go"}}]
- say: "<done> & dusted"
`)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"<b>&amp;</b>", "\u2028 \x00 \\ \"", "\xff\xfe", "a\r\nb"}))
		tr := model.NewTranscript(c)
		add(rt, tr, model.Message{Role: model.System, Text: text.Draw(rt, "system")})
		var before *script.Recorded
		for turn := range rapid.IntRange(1, 5).Draw(rt, "turns") {
			kind := rapid.SampledFrom([]string{"one ", "two ", "three "}).Draw(rt, "kind")
			add(rt, tr, model.Message{Role: model.User, Text: kind + text.Draw(rt, "user")})
			reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: turn + 1}})
			if err != nil {
				rt.Fatalf("Exchange = %v", err)
			}
			asked := srv.Requests()
			now := asked[len(asked)-1]
			if before != nil {
				if head := bytes.TrimSuffix(before.Body, []byte("]}")); !bytes.HasPrefix(now.Body, head) {
					rt.Fatalf("the body\n%s\ndoes not begin like the one before\n%s", now.Body, before.Body)
				}
				if want := (before.Input + before.Output) / 64 * 64; now.Hit < want {
					rt.Fatalf("cache hit %d tokens, want %d", now.Hit, want)
				}
			}
			before = &now
			answer(rt, tr, reply, text.Draw(rt, "result"))
		}
	})
}

// replay checks that usage is what the server counted, that reply and results are found in
// the cache, and that another agent that starts from the same messages finds them too.
func replay(t *testing.T, connect Connect) {
	srv, c := Serve(t, connect, `
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
	usage := func(input, hit, output int64) model.Usage {
		return model.Usage{Input: model.Tokens(input), CacheRead: model.Tokens(hit), Output: model.Tokens(output)}
	}
	tr := model.NewTranscript(c)
	add(t, tr, model.Message{Role: model.System, Text: "system"})
	add(t, tr, model.Message{Role: model.User, Text: "find it"})
	first := ask(tr, "0", 1)
	want := usage(462, 0, 186)
	want.Reasoning = model.Tokens(6)
	if first.Usage != want {
		t.Errorf("usage of request 1 = %v, want %v", first.Usage, want)
	}
	answer(t, tr, first, "a.go")
	second := ask(tr, "0", 2)
	want = usage(4409-640, 640, 2)
	want.Reasoning = model.Tokens(0)
	if second.Usage != want {
		t.Errorf("usage of request 2 = %v, want %v", second.Usage, want)
	}

	child := model.NewTranscript(c, tr.Messages()...)
	add(t, child, model.Message{Role: model.User, Text: "a task"})
	ask(child, "0.1", 1)
	if got := srv.Requests()[2].Hit; got != 4352 { // 4409 rounded down to 64
		t.Errorf("the child's first request hit %d tokens, want the parent's last request, 4352", got)
	}
}

// parallel checks that one client serves many agents at once, each with its own reply.
func parallel(t *testing.T, connect Connect) {
	rules := ""
	for i := range 8 {
		rules += fmt.Sprintf("- {when: {agent: \"0.%d\"}, say: \"reply %d\", latency: %dms}\n", i, i, 40-5*i)
	}
	_, c := Serve(t, connect, rules)
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
