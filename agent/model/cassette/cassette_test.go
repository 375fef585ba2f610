package cassette_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skein/agent/model"
	"skein/agent/model/cassette"
	"skein/agent/model/openai"
	"skein/agent/model/script"
)

const secret = "of-ours-and-secret"

// hide is a mask of one secret.
type hide struct{}

func (hide) Written(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte(secret), []byte("[hidden]"))
}

func client(t *testing.T, url string) *openai.Client {
	t.Helper()
	c, err := openai.New(openai.Options{BaseURL: url, Model: "script", Scripted: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// offline is what a player encodes with: nobody listens where it points.
func offline(t *testing.T) *openai.Client { return client(t, "http://127.0.0.1:1/v1") }

// record runs a conversation with a scripted model, kept in a folder.
func record(t *testing.T, rules string, run func(model.Client)) (dir string) {
	t.Helper()
	s, err := script.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "cassette[1]")
	rec, err := cassette.Recorder(client(t, srv.URL()), dir, hide{})
	if err != nil {
		t.Fatal(err)
	}
	run(rec)
	if err := errors.Join(rec.Close(), srv.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func play(t *testing.T, dir string) model.Client {
	t.Helper()
	p, err := cassette.Player(dir, offline(t), hide{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An outcome is what an agent got for a request.
type outcome struct {
	Reply model.Reply
	Shown string
}

// talk is one agent's conversation, with results for the calls of its model.
func talk(t *testing.T, c model.Client, agent string, turns int, front ...model.Message) []outcome {
	tools, err := c.EncodeTools([]model.Tool{{Name: "bash", Schema: []byte(`{}`)}})
	if err != nil {
		t.Error(err)
	}
	tr := model.NewTranscript(c, front...)
	add := func(m model.Message) {
		if err := tr.Append(m); err != nil {
			t.Error(err)
		}
	}
	add(model.Message{Role: model.User, Text: "I am " + agent + " <&>"})
	var got []outcome
	for turn := range turns {
		var o outcome
		o.Reply, err = c.Exchange(t.Context(), model.Request{
			Messages: tr.Messages(), Tools: tools, MaxTokens: 100, Origin: model.Origin{Agent: agent, Turn: turn + 1},
			Stream: func(d model.Delta) { o.Shown += d.Text },
		})
		if err != nil {
			t.Errorf("Exchange = %v", err)
			return got
		}
		got = append(got, o)
		add(o.Reply.Message)
		for _, call := range o.Reply.Message.Calls {
			add(model.Message{Role: model.ToolRole, CallID: call.ID, Name: call.Name, Text: "result of " + call.Name})
		}
		add(model.Message{Role: model.User, Text: "go on"})
	}
	return got
}

const rules = `
- when: {agent: "0", turn: 1}
  calls: [{bash: {command: "a < b"}}, {bash: {command: "c"}}]
  reasoning: "so be it"
- when: {agent: "0.9"}
  status: 429
  retry_after: 7
- when: {agent: "0.*"}
  say: "a <reply>"
  latency: 5ms
- say: done
`

// family is a parent and children at once that begin with what it said.
func family(t *testing.T, c model.Client) map[string][]outcome {
	got := map[string][]outcome{"0": talk(t, c, "0", 3)}
	front := model.NewTranscript(c)
	if err := front.Append(model.Message{Role: model.System, Text: "You are a child."}); err != nil {
		t.Fatal(err)
	}
	names := []string{"0.1", "0.2", "0.3", "0.3.1"}
	children := make([][]outcome, len(names))
	var g errgroup.Group
	for i, name := range names {
		g.Go(func() error {
			children[i] = talk(t, c, name, 4, front.Messages()...)
			return nil
		})
	}
	_ = g.Wait() // never an error
	for i, name := range names {
		got[name] = children[i]
	}
	return got
}

func TestReplayIsTheSame(t *testing.T) {
	var first map[string][]outcome
	dir := record(t, rules, func(c model.Client) { first = family(t, c) })
	for range 2 {
		again := family(t, play(t, dir))
		for agent := range first {
			if len(first[agent]) < 3 || len(again[agent]) != len(first[agent]) {
				t.Fatalf("agent %s got %d replies, then %d", agent, len(first[agent]), len(again[agent]))
			}
			for i, want := range first[agent] {
				if want.Shown == "" {
					want.Shown = want.Reply.Message.Text // an unstreamed reply
				}
				if got := again[agent][i]; !reflect.DeepEqual(got, want) {
					t.Errorf("agent %s, request %d = %+v, want %+v", agent, i, got, want)
				}
			}
		}
	}
	if dialect, err := cassette.Dialect(dir); dialect != "openai" || err != nil {
		t.Errorf("Dialect = %q, %v, want openai", dialect, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "0.3.1.jsonl"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestFailuresAreReplayed(t *testing.T) {
	ask := func(c model.Client) (model.Reply, error) {
		raw, err := c.Encode(model.Message{Role: model.User, Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Exchange(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Raw: raw}}, Origin: model.Origin{Agent: "0.9", Turn: 2}})
	}
	var want, got *model.Error
	dir := record(t, rules, func(c model.Client) {
		if _, err := ask(c); !errors.As(err, &want) {
			t.Fatalf("Exchange = %v, want an error of the provider", err)
		}
	})
	_, err := ask(play(t, dir))
	if !errors.As(err, &got) || got.Status != 429 || got.RetryAfter != 7*time.Second || got.Message != want.Message || got.Again != want.Again || got.Usage != model.NoUsage() || got.Hint() != want.Hint() {
		t.Errorf("replayed %#v, want %#v", err, want)
	}
}

func TestMismatch(t *testing.T) {
	dir := record(t, "- say: done\n", func(c model.Client) { talk(t, c, "0", 2) })
	for _, tt := range []struct {
		name   string
		change func(*model.Request)
		want   string
	}{
		{"text", func(r *model.Request) { r.Messages[0].Raw = json.RawMessage(`{"role":"user","content":"I am 1 <&>"}`) }, `replay agent 0, turn 1 (0.jsonl line 2): message 1 (user) differs at byte 31: recorded …"\"role\"`},
		{"another message", func(r *model.Request) { r.Messages = append(r.Messages, r.Messages[0]) }, "message 2 (user) was not recorded"},
		{"no message", func(r *model.Request) { r.Messages = nil }, `message 1 is missing: "{\"role\"`},
		{"turn", func(r *model.Request) { r.Origin.Turn = 2 }, "turn 1 was recorded here"},
		{"agent", func(r *model.Request) { r.Origin.Agent = "0.1" }, "replay agent 0.1, turn 1: nothing of this agent was recorded"},
		{"tools", func(r *model.Request) { r.Tools = nil }, "the tool list differs at byte 0: recorded"},
		{"schema", func(r *model.Request) { r.Schema = json.RawMessage(`{}`) }, `the schema of the answer differs at byte 0: recorded "", asked "{}"`},
		{"limit", func(r *model.Request) { r.MaxTokens = 200 }, "the reply limit is 200 tokens, recorded 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := play(t, dir)
			good := request(t, c, "0", 1)
			bad := request(t, c, "0", 1)
			tt.change(&bad)
			_, err := c.Exchange(t.Context(), bad)
			wrong := (*cassette.MismatchError)(nil)
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) || wrong.Hint() == "" {
				t.Errorf("Exchange = %v, want …%s…", err, tt.want)
			}
			if _, again := c.Exchange(t.Context(), good); !errors.Is(again, err) {
				t.Errorf("Exchange after it = %v, want the same error", again)
			}
		})
	}
	c := play(t, dir)
	got := talk(t, c, "0", 2)
	for range 2 { // the second is past the end
		_, err := c.Exchange(t.Context(), request(t, c, "0", 3))
		if wrong := (*cassette.MismatchError)(nil); len(got) != 2 || !errors.As(err, &wrong) || wrong.What != "the recording ends here" || wrong.Line != 3 {
			t.Errorf("Exchange past the end = %v", err)
		}
	}
}

// request is the first that talk makes.
func request(t *testing.T, c model.Client, agent string, turn int) model.Request {
	t.Helper()
	tools, err := c.EncodeTools([]model.Tool{{Name: "bash", Schema: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.Encode(model.Message{Role: model.User, Text: "I am " + agent + " <&>"})
	if err != nil {
		t.Fatal(err)
	}
	return model.Request{
		Messages: []model.Message{{Role: model.User, Raw: raw}}, Tools: tools, MaxTokens: 100,
		Origin: model.Origin{Agent: agent, Turn: turn},
	}
}

// A change deep in the front is found too, not only in what is new.
func TestMismatchInTheFront(t *testing.T) {
	dir := record(t, "- say: done\n", func(c model.Client) { talk(t, c, "0", 3) })
	c := play(t, dir)
	tr := model.NewTranscript(c)
	for turn := 1; ; turn++ {
		req := request(t, c, "0", turn)
		if turn == 1 {
			if err := tr.Append(req.Messages[0]); err != nil {
				t.Fatal(err)
			}
		}
		req.Messages = append([]model.Message{}, tr.Messages()...)
		if turn == 3 {
			req.Messages[1].Raw = json.RawMessage(`{"role":"assistant","content":"never said"}`)
			_, err := c.Exchange(t.Context(), req)
			if err == nil || !strings.Contains(err.Error(), "message 2 (assistant) differs at byte") {
				t.Errorf("Exchange = %v, want message 2 to differ", err)
			}
			return
		}
		reply, err := c.Exchange(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []model.Message{reply.Message, {Role: model.User, Text: "go on"}} {
			if err := tr.Append(m); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	say := func(c model.Client) []model.Message {
		tr := model.NewTranscript(c)
		if err := tr.Append(model.Message{Role: model.User, Text: "my key is " + secret}); err != nil {
			t.Fatal(err)
		}
		for turn := range 2 {
			reply, err := c.Exchange(t.Context(), model.Request{Messages: tr.Messages(), Origin: model.Origin{Agent: "0", Turn: turn + 1}})
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Append(reply.Message); err != nil {
				t.Fatal(err)
			}
		}
		return tr.Messages()
	}
	var first []model.Message
	dir := record(t, "- say: 'your key is "+secret+"'\n  reasoning: '"+secret+"'", func(c model.Client) { first = say(c) })
	data, err := os.ReadFile(filepath.Join(dir, "0.jsonl"))
	if err != nil || bytes.Contains(data, []byte(secret)) {
		t.Errorf("the recording holds the secret (%v): %s", err, data)
	}
	again := say(play(t, dir))
	if !strings.Contains(first[1].Text, secret) || again[1].Text != "your key is [hidden]" || bytes.Contains(again[1].Raw, []byte(secret)) {
		t.Errorf("replies: %q, again %q", first[1].Text, again[1].Text)
	}
}

// Each line has what is new, whatever the length of the conversation.
func TestSizeGrowsWithWhatIsNew(t *testing.T) {
	dir := record(t, "- say: done\n", func(c model.Client) { talk(t, c, "0", 60) })
	data, err := os.ReadFile(filepath.Join(dir, "0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	if at5, at60 := len(lines[5]), len(lines[60]); at60 > at5+10 {
		t.Errorf("line of turn 5 has %d bytes, of turn 60 %d", at5, at60)
	}
}

func TestBrokenRecordings(t *testing.T) {
	dir := record(t, "- say: done\n", func(c model.Client) { talk(t, c, "0", 3) })
	data, err := os.ReadFile(filepath.Join(dir, "0.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, tt := range []struct{ name, data, want string }{
		{"cut", string(data[:len(data)-10]), "0.jsonl line 4: it is cut"},
		{"cut at the end of a line", strings.TrimSuffix(string(data), "\n"), "0.jsonl line 4: it is cut"},
		{"no JSON", lines[0] + "{\n" + lines[2], "0.jsonl line 2: "},
		{"line missing", lines[0] + lines[1] + lines[3], "0.jsonl line 3: it does not go on from the line before"},
		{"line changed", lines[0] + strings.Replace(lines[1], "I am", "I was", 1) + lines[2], "0.jsonl line 3: it does not go on"},
		{"neither reply nor error", lines[0] + `{"turn":1,"front":{"messages":0,"sha256":""}}` + "\n", "0.jsonl line 2: it has neither"},
		{"version", strings.Replace(string(data), `{"cassette":1`, `{"cassette":2`, 1), "0.jsonl line 1: it does not begin a recording of version 1"},
		{"empty", "", "0.jsonl line 1: the file is empty"},
		{"other agent", strings.Replace(string(data), `"agent":"0"`, `"agent":"1"`, 1), "0.jsonl line 1: it is of agent 1"},
	} {
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, "0.jsonl"), []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := cassette.Player(other, offline(t), hide{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Player = %v, want …%s…", tt.name, err, tt.want)
		}
	}
	if _, err := cassette.Player(t.TempDir(), offline(t), hide{}); err == nil || !strings.Contains(err.Error(), "holds none") {
		t.Errorf("Player of an empty folder = %v", err)
	}
	if _, err := cassette.Player(filepath.Join(dir, "none"), offline(t), hide{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Player of no folder = %v", err)
	}
	if _, err := cassette.Player(dir, foreign{offline(t)}, hide{}); err == nil || !strings.Contains(err.Error(), "dialect openai, not foreign") {
		t.Errorf("Player with another dialect = %v", err)
	}
	if _, err := cassette.Recorder(offline(t), dir, hide{}); err == nil || !strings.Contains(err.Error(), "holds a recording already") {
		t.Errorf("Recorder to a folder with a recording = %v", err)
	}
}

type foreign struct{ *openai.Client }

func (foreign) Dialect() string { return "foreign" }

// That a reply could not be kept is told at the end; the run has it all the same.
func TestRecordingThatCannotBeWritten(t *testing.T) {
	s, err := script.Parse([]byte("- say: done\n"))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := script.Listen(t.Context(), s, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	for _, tt := range []struct{ agent, want string }{{"0", "record agent 0, turn 1: "}, {"../0", `"../0" is no ordinal`}} {
		dir := filepath.Join(t.TempDir(), "gone")
		rec, err := cassette.Recorder(client(t, srv.URL()), dir, hide{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		req := request(t, rec, "0", 1)
		if req.Origin.Agent = tt.agent; tt.agent != "0" {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		_, asked := rec.Exchange(t.Context(), req)
		if tt.agent == "0" && asked != nil {
			t.Errorf("Exchange = %v, want the reply", asked)
		}
		if err := rec.Close(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Close = %v, want …%s…", err, tt.want)
		}
	}
}
