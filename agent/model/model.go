// Package model holds what an agent and a model say to each other: messages, the
// [Transcript] they form, and the [Client] that carries out one exchange.
//
// A message is kept twice: as the neutral view that the harness reads, and as the raw
// JSON of the provider's dialect that is sent. The raw form is made once, when the
// message enters the transcript, or kept as it was received; so request k+1 begins with
// the same bytes as request k and prompt caches hit.
package model

import (
	"context"
	"encoding/json"
	"time"
)

// Role says who speaks in a [Message].
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// A Message is one entry of a conversation. It is not changed once it is in a [Transcript].
type Message struct {
	Role    Role            `json:"role"`
	Text    string          `json:"text,omitempty"`
	Calls   []ToolCall      `json:"calls,omitempty"`   // of an assistant message
	CallID  string          `json:"call_id,omitempty"` // of a tool message: the call it answers
	Name    string          `json:"name,omitempty"`    // of a tool message: the tool that answered
	IsError bool            `json:"is_error,omitempty"`
	Raw     json.RawMessage `json:"raw,omitempty"` // as sent or received, in Dialect
	Dialect string          `json:"dialect,omitempty"`
}

// A ToolCall is a model's wish to have a tool run.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the text of the arguments as the model wrote it; it may be no JSON at all.
	Args string `json:"args"`
}

// A Tool is a tool's description as the model is shown it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
}

// Origin names the agent and the reply that a request is for. Only the scripted
// provider is told.
type Origin struct {
	Agent string // the agent's ordinal, such as "0.2"
	Turn  int    // which reply of this agent it will be, from 1
}

// A Request is one exchange asked of a [Client].
type Request struct {
	Messages  []Message       // each with Raw set: see [Transcript]
	Tools     json.RawMessage // from EncodeTools; nil sends no tools field
	MaxTokens int             // limit of the reply in tokens, 0 = the provider's own
	Origin    Origin

	// NoCalls says that the reply must not call a tool. A client leaves the tools out, or,
	// where a provider wants the tools of earlier calls described, forbids their use.
	NoCalls bool

	// Schema asks for an answer that is JSON of this schema, where the provider can hold
	// the model to it; nil leaves the answer free. The caller validates all the same.
	Schema json.RawMessage

	// Stream is told of text as it comes, in order, before Exchange returns; it may be nil.
	// A reply that fails on the way was told in part: only what Exchange returns counts.
	Stream func(Delta)

	// Attempt is told of every failed attempt by a client that tries again; it may be nil.
	Attempt func(Attempt)
}

// A Delta is a piece of a reply that is still being written.
type Delta struct {
	Text      string
	Reasoning string
}

// An Attempt is an exchange that failed and will be tried again.
type Attempt struct {
	Number int           // from 1
	Err    error         // why it failed
	Wait   time.Duration // until the next attempt

	// Usage is what it cost: nothing where the server refused, unknown where a reply broke.
	Usage Usage
}

// Params go to the provider in its own terms. They are fixed when a client is made.
type Params struct {
	Temperature *float64                   `json:"temperature,omitempty"`
	Seed        *int64                     `json:"seed,omitempty"`
	Reasoning   string                     `json:"reasoning,omitempty"` // "" for the provider's own, else off, low, medium, high or a number of tokens
	Extra       map[string]json.RawMessage `json:"extra,omitempty"`     // further fields of the request, sent as they are
}

// Finish is why a model stopped writing.
type Finish string

// The reasons that the loop tells apart; clients map the provider's own words to them.
const (
	FinishStop      Finish = "stop"
	FinishToolCalls Finish = "tool_calls"
	FinishLength    Finish = "length"
	FinishOther     Finish = "other"
)

// A Reply is what a model answered.
type Reply struct {
	Message Message // Raw exactly as received; only a call's missing or repeated id is set
	Finish  Finish
	Why     string // the provider's own word where Finish is FinishOther; "" where Text is the model's refusal
	Usage   Usage
}

// A Client does one exchange at a time with one model. Its methods may be called from
// several goroutines at once.
type Client interface {
	// Exchange sends the request and returns the reply. A failure of the provider or of
	// the way to it is an [*Error]; a cancelled ctx is returned as ctx's error.
	Exchange(ctx context.Context, req Request) (Reply, error)

	// Encode gives the raw form of a message that the harness made.
	Encode(m Message) (json.RawMessage, error)

	// EncodeTools gives the raw form of a tool list, in the order given.
	EncodeTools(tools []Tool) (json.RawMessage, error)

	// Dialect names the raw form, such as "openai". Raw forms of one dialect can be sent
	// by every client of it.
	Dialect() string
}

// An Error is a failed exchange.
type Error struct {
	Provider string
	Status   int    // HTTP status, 0 when no answer came
	Message  string // the server's own words, or what went wrong on the way
	Advice   string // what to do next, may be empty
	Cause    error  // may be nil

	// Again says that the same request may succeed later: the connection broke, the reply
	// ended early or was empty, or the status says so.
	Again bool
	// RetryAfter is how long the server asked to wait, 0 if it did not.
	RetryAfter time.Duration
	// TooLong says that the conversation does not fit into the model's window.
	TooLong bool
	// Usage is what the exchange cost all the same: nothing where the request never came to
	// the model, what was counted where the reply is useless, unknown where it broke.
	Usage Usage
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return "ask " + e.Provider + ": " + e.Message
	}
	return "ask " + e.Provider + ": status " + itoa(e.Status) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Hint says what to do next.
func (e *Error) Hint() string { return e.Advice }
