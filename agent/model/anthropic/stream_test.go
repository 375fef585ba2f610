package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skein/agent/model"
	"skein/agent/model/anthropic"
)

// events makes a stream, with the names of the events and with pings between them.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\nevent: x\r\ndata: " + d + "\r\n\r\n")
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"type":"message","content":[],"usage":{"input_tokens":12,"cache_read_input_tokens":640,"cache_creation_input_tokens":0,"output_tokens":1}}}`
	stop  = `{"type":"message_stop"}`
)

func TestStream(t *testing.T) {
	stream := events(
		start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","new_field":{"a":[1]}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so \u00e9"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"much"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq+/=="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"<a> "}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"n":1}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"😀"}}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"ec"}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"ho \\\"é\\\"\", \"n\": 1.0}"}}`,
		`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"plan","input":{}}}`,
		`{"type":"something_new","x":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":25}}`,
		stop,
	)
	const raw = `[{"type":"thinking","thinking":"so \u00e9much","signature":"Eq+/==","new_field":{"a":[1]}},` +
		`{"type":"redacted_thinking","data":"xyz"},` +
		`{"type":"text","text":"<a> 😀","citations":[{"n":1}]},` +
		`{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command": "echo \"é\"", "n": 1.0}},` +
		`{"type":"tool_use","id":"toolu_2","name":"plan","input":{}}]`
	url, _ := serve(t, stream)
	c := client(t, anthropic.Options{BaseURL: url, Stream: true})
	var text, reasoning string
	got, err := c.Exchange(t.Context(), model.Request{
		Messages: transcript(t, c, hello).Messages(),
		Stream:   func(d model.Delta) { text, reasoning = text+d.Text, reasoning+d.Reasoning },
	})
	want := model.Reply{
		Message: model.Message{
			Role: model.Assistant, Text: "<a> 😀", Raw: json.RawMessage(raw),
			Calls: []model.ToolCall{{ID: "toolu_1", Name: "bash", Args: `{"command": "echo \"é\"", "n": 1.0}`}, {ID: "toolu_2", Name: "plan", Args: "{}"}},
		},
		Finish: model.FinishToolCalls,
		Usage:  model.Usage{Input: model.Tokens(12), CacheRead: model.Tokens(640), CacheWrite: model.Tokens(0), Output: model.Tokens(25)},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Exchange = %+v\n%s, %v, want %+v\n%s", got, got.Message.Raw, err, want, raw)
	}
	if text != "<a> 😀" || reasoning != "so émuch" {
		t.Errorf("deltas = %q, %q", text, reasoning)
	}
}

func TestArgumentsCutByTheLimit(t *testing.T) {
	begin := func(i int, id string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"f","input":{}}}`, i, id)
	}
	write := func(i int, text string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i, text)
	}
	for _, tc := range []struct {
		name, reason string
		events       []string
		want         []string
	}{
		{"in the middle", "max_tokens", []string{begin(0, "a"), write(0, `{"path": "a`)}, []string{`{"path": "a`}},
		{"before they began", "max_tokens", []string{begin(0, "a"), write(0, "")}, []string{""}},
		{"without a piece of them", "model_context_window_exceeded", []string{begin(0, "a")}, []string{""}},
		{"behind a call without any", "max_tokens", []string{begin(0, "a"), begin(1, "b"), write(1, "{")}, []string{"{}", "{"}},
		{"not at all", "tool_use", []string{begin(0, "a")}, []string{"{}"}},
	} {
		end := `{"type":"message_delta","delta":{"stop_reason":"` + tc.reason + `"},"usage":{"output_tokens":8}}`
		url, _ := serve(t, events(slices.Concat([]string{start}, tc.events, []string{end, stop})...))
		c := client(t, anthropic.Options{BaseURL: url, Stream: true})
		got, err := c.Exchange(t.Context(), model.Request{Messages: transcript(t, c, hello).Messages()})
		if err != nil {
			t.Errorf("%s: Exchange = %v", tc.name, err)
		}
		var args []string
		for _, call := range got.Message.Calls {
			args = append(args, call.Args)
		}
		if !slices.Equal(args, tc.want) {
			t.Errorf("%s: arguments = %q, want %q", tc.name, args, tc.want)
		}
		if n := strings.Count(string(got.Message.Raw), `"input":{}`); n != len(tc.want) { // what the API takes back
			t.Errorf("%s: raw message = %s, want an object in each call", tc.name, got.Message.Raw)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		status       int
		again, long  bool
		says         string
	}{
		{"no end", events(start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), 0, true, false, "ended before the reply was whole"},
		{"nothing", "", 0, true, false, "ended before the reply was whole"},
		{"overloaded", events(start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), 529, true, false, "Overloaded"},
		{"limit", events(`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`), 429, true, false, "slow down"},
		{"wrong", events(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), 400, false, false, "no"},
		{"too long", events(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`), 400, false, true, "prompt is too long"},
		{"an error of a new kind", events(`{"type":"error","error":{"type":"gremlins","message":"eek"}}`), 500, true, false, "eek"},
		{"an error that is no stream", `{"type":"error","error":{"type":"api_error","message":"oops"}}`, 500, true, false, "oops"},
		{"garbage", events(`{"type":`), 200, false, false, "no event of a message"},
		{"a delta of no block", events(start, `{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}`), 200, false, false, "no event of a message"},
	} {
		url, _ := serve(t, tc.stream)
		c := client(t, anthropic.Options{BaseURL: url, Stream: true})
		_, err := c.Exchange(t.Context(), model.Request{Messages: transcript(t, c, hello).Messages()})
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Again != tc.again || failed.TooLong != tc.long || !strings.Contains(failed.Message, tc.says) {
			t.Errorf("%s: Exchange = %+v, want again %t, too long %t, …%s…", tc.name, failed, tc.again, tc.long, tc.says)
		} else if tc.status != 0 && failed.Status != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, failed.Status, tc.status)
		}
	}
}
