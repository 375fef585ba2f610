package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"

	"skein/agent/model"
)

// A dialect is what differs between protocols.
type dialect struct {
	base   string // what the base URL has after the host
	callID string // of the first call of the first turn; empty where the protocol has no ids

	// refusal and filtered are the reasons of a reply that was refused or filtered.
	refusal, filtered model.Finish
	// refusalWhy and filteredWhy are the provider's own words for them.
	refusalWhy, filteredWhy string
	// badArgs tells whether a call's arguments that are no JSON can be sent, whole and streamed.
	badArgs map[bool]bool
	// cache tells that usage has a counter for tokens read from a cache; write, one for those
	// written to it; reasoning, one for those of reasoning.
	cache, write, reasoning bool

	whole, streamed []replyCase // with bodies of their own
	broken          []failureCase
	trouble         string // a stream that brings an error in its middle
	tooLong         string // the body of status 400 that means that the conversation is too long
}

var dialects = map[string]dialect{
	"openai": {
		base: "/v1", callID: "call_0_1_1",
		refusal: model.FinishOther, filtered: model.FinishOther, filteredWhy: "content_filter",
		badArgs: map[bool]bool{false: true, true: true},
		cache:   true, reasoning: true,
		whole:    openaiWhole,
		streamed: openaiStreamed,
		broken:   openaiBroken,
		trouble:  events(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"so far"}}]}`, `{"error":{"message":"no provider left","code":502}}`),
		tooLong:  `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
	},
	"anthropic": {
		callID:  "toolu_0_1_1",
		refusal: model.FinishOther, filtered: model.FinishOther, refusalWhy: "refusal", filteredWhy: "refusal",
		badArgs: map[bool]bool{true: true},
		cache:   true, write: true,
		whole:    anthropicWhole,
		streamed: anthropicStreamed,
		trouble: events(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"no provider left"}}`),
		tooLong: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
	},
	"ollama": {
		refusal: model.FinishStop, filtered: model.FinishStop,
		whole:    ollamaWhole,
		streamed: ollamaStreamed,
		trouble:  lines(`{"model":"m","message":{"role":"assistant","content":"so far"},"done":false}`, `{"error":"no provider left"}`),
	},
}

const odd = `{ "content":"caf\u00e9 <b>","role" : "assistant", "x_signature":{"k":[1, 2.50]},"reasoning_content":"hm & so"}`

var openaiWhole = []replyCase{
	{name: "unknown fields", rule: completion(odd, "stop"), text: "café <b>", finish: model.FinishStop, raw: odd},
	{name: "null content", rule: completion(`{"role":"assistant","content":null}`, "stop"), finish: model.FinishStop},
	{
		name: "content in parts", finish: model.FinishStop, text: "ab",
		rule: completion(`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "stop"),
	},
	{
		name: "arguments as an object", finish: model.FinishToolCalls,
		rule:  completion(`{"role":"assistant","content":"","tool_calls":[{"id":"q","type":"function","function":{"name":"f","arguments":{"b": 1, "a": 2}}}]}`, "stop"),
		calls: []model.ToolCall{{ID: "q", Name: "f", Args: `{"b": 1, "a": 2}`}},
	},
	{
		name: "ids missing and twice", finish: model.FinishToolCalls,
		rule: completion(`{"role":"assistant","tool_calls": [{"function":{"name":"f","arguments":"1"}},`+
			`{"id":"a","function":{"name":"g","arguments":"2"}}, {"id":"a","function":{"name":"h","arguments":"3"}},{"id":null,"function":{"name":"i"}}],"x": 1.0}`, "tool_calls"),
		raw: `{"role":"assistant","tool_calls": [{"id":"call_1_1","function":{"name":"f","arguments":"1"}},` +
			`{"id":"a","function":{"name":"g","arguments":"2"}}, {"id":"ax","function":{"name":"h","arguments":"3"}},{"id":"call_1_4","function":{"name":"i"}}],"x": 1.0}`,
		calls: []model.ToolCall{
			{ID: "call_1_1", Name: "f", Args: "1"},
			{ID: "a", Name: "g", Args: "2"},
			{ID: "ax", Name: "h", Args: "3"},
			{ID: "call_1_4", Name: "i", Args: "{}"},
		},
	},
}

var openaiStreamed = []replyCase{
	{
		name: "unknown fields", text: "café <b>", finish: model.FinishStop,
		rule: body(deltas("stop", `{"role":"assistant","x_signature":{"k":[1,2.50]}}`, `{"reasoning_content":"hm "}`, `{"reasoning_content":"& so"}`, `{"content":"café"}`, `{"content":" <b>"}`)),
		keeps: []string{
			`"x_signature":{"k":[1,2.50]}`, `"reasoning_content":"hm & so"`, `"content":"café <b>"`,
		},
	},
	{
		name: "calls by index, in turns", finish: model.FinishToolCalls,
		rule: body(deltas("tool_calls", `{"role":"assistant","content":null}`,
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\":"}},{"index":1,"function":{"arguments":":1}"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"2}"}}]}`)),
		calls: []model.ToolCall{{ID: "a", Name: "f", Args: `{"y":2}`}, {ID: "b", Name: "g", Args: `{"x":1}`}},
	},
	{
		name: "arguments as an object", finish: model.FinishToolCalls,
		rule: body(deltas("tool_calls", `{"role":"assistant","content":""}`,
			`{"tool_calls":[{"index":0,"id":"q","type":"function","function":{"name":"f","arguments":{"b":1,"a":2}}}]}`)),
		calls: []model.ToolCall{{ID: "q", Name: "f", Args: `{"b":1,"a":2}`}},
	},
	{
		name: "ids missing and twice", finish: model.FinishToolCalls,
		rule: body(deltas("tool_calls", `{"role":"assistant","content":""}`,
			`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}},{"index":2,"id":"a","function":{"name":"h","arguments":"{}"}}]}`)),
		calls: []model.ToolCall{{Name: "f", Args: "{}"}, {ID: "a", Name: "g", Args: "{}"}, {Name: "h", Args: "{}"}},
	},
	{
		name: "a whole reply all the same", text: "hi", finish: model.FinishStop,
		rule: completion(`{"role":"assistant","content":"hi"}`, "stop"), silent: true,
	},
}

// openaiBroken are replies of status 200 that are none.
var openaiBroken = []failureCase{
	{name: "error with status 200", rule: body(`{"error":{"message":"no provider left"}}`), status: 200, says: "no provider left", again: either},
	{name: "no choices", rule: body(`{"choices":[]}`), status: 200, again: either},
	{name: "null message", rule: body(`{"choices":[{"message":null}]}`), status: 200, again: either},
	{name: "message of another shape", rule: body(`{"choices":[{"message":"hello"}]}`), status: 200, again: either},
	{name: "calls given twice", rule: body(`{"choices":[{"message":{"tool_calls":[{}],"tool_calls":[{},{}]}}]}`), status: 200, again: either},
	{name: "null calls", rule: body(`{"choices":[{"message":{"tool_calls":[null]}}]}`), status: 200, again: either},
}

const oddBlocks = `[{"type":"redacted_thinking","data":"c2VjcmV0"}, {"type":"text", "text":"caf\u00e9 <b>","citations":null}]`

var anthropicWhole = []replyCase{
	{
		name: "unknown fields", text: "café <b>", finish: model.FinishStop, raw: oddBlocks,
		rule: body(`{"id":"m","type":"message","role":"assistant","content":` + oddBlocks + `,"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`),
	},
}

var anthropicStreamed = []replyCase{
	{
		name: "unknown fields", text: "café <b>", finish: model.FinishStop,
		rule: body(events(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2VjcmV0"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"news_of_tomorrow","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":null}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"café"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" <b>"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
			`{"type":"message_stop"}`)),
		keeps: []string{`"type":"redacted_thinking"`, `"data":"c2VjcmV0"`, `"citations":null`, `"text":"café <b>"`},
	},
}

const oddOllama = `{ "content":"caf\u00e9 <b>","role" : "assistant", "x_signature":{"k":[1, 2.50]},"thinking":"hm & so"}`

var ollamaWhole = []replyCase{
	{
		name: "unknown fields", text: "café <b>", finish: model.FinishStop, raw: oddOllama,
		rule: body(`{"model":"m","message":` + oddOllama + `,"done":true,"done_reason":"stop"}`),
	},
}

var ollamaStreamed = []replyCase{
	{
		name: "unknown fields", text: "café <b>", finish: model.FinishStop,
		rule: body(lines(`{"message":{"role":"assistant","content":"","thinking":"hm "},"done":false}`,
			`{"message":{"role":"assistant","content":"café","thinking":"& so","x_signature":{"k":[1,2.50]}},"done":false}`,
			`{"message":{"role":"assistant","content":" <b>"},"done":true,"done_reason":"stop"}`)),
		keeps: []string{`"x_signature":{"k":[1,2.50]}`, `"thinking":"hm & so"`, `"content":"café <b>"`},
	},
}

// body is a rule that answers with a body of the test's own.
func body(text string) string {
	quoted, _ := json.Marshal(text) // a text always encodes
	return "body: " + string(quoted)
}

// completion is the body of a whole reply with a message of the test's own.
func completion(message, finish string) string {
	return body(fmt.Sprintf(`{"choices":[{"message":%s,"finish_reason":%q}]}`, message, finish))
}

// deltas is the stream of a reply that consists of these.
func deltas(finish string, all ...string) string {
	var data []string
	for _, d := range all {
		data = append(data, `{"choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
	}
	return events(append(data, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, "[DONE]")...)
}

func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

func lines(data ...string) string { return strings.Join(data, "\n") + "\n" }
