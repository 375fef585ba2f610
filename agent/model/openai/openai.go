// Package openai asks a model over HTTP in the chat-completions dialect, which OpenAI,
// DeepSeek, OpenRouter, LM Studio, vLLM and many others speak.
//
// A reply's message is kept byte for byte, fields that nobody here knows included, and
// sent back unchanged; a request is its messages' bytes joined by commas. Nothing that was
// encoded once is encoded again, so provider caches see each request begin like the last.
// A stream has no message bytes: they are put together from its deltas, the same bytes for
// the same deltas.
//
// Non-goals: retries (a client that wraps this one), other dialects.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

// Options tell a [Client] whom to ask. BaseURL and Model must be set.
type Options struct {
	BaseURL string // such as "https://api.deepseek.com/v1"; "/chat/completions" is added
	Model   string // as the provider names it
	Name    string // of the provider, for errors; default "openai"
	Key     string // empty sends no Authorization header
	KeyVar  string // the environment variable the key comes from, for hints

	// HTTP carries the requests; nil means a client of its own. Redirects are not followed
	// unless it has a policy: they would carry the conversation to another host.
	HTTP *http.Client

	Stream bool // ask for the reply in pieces
	Limits wire.Limits
	Params model.Params

	// LimitField is the request's field for the length of the reply, default "max_tokens".
	// OpenAI itself takes "max_completion_tokens" for all its models, the old name for some.
	LimitField string
	// ReasoningOff is the reasoning_effort that means none at all, such as "none". Where
	// there is no such word, Params.Reasoning "off" is refused.
	ReasoningOff string

	Scripted bool // tell the provider the request's origin (header Skein-Agent)
}

// A Client asks one model of one provider. It is safe for concurrent use.
type Client struct {
	wire   *wire.Client
	name   string
	stream bool
	head   []byte // a request body up to its first message
	limit  string // the name of the field for the reply's length
	schema wire.Schemas
}

var _ model.Client = (*Client)(nil)

// New returns a client, or an error if the options cannot work. It does not connect.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.LimitField == "" {
		o.LimitField = "max_tokens"
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	w, err := wire.New(wire.Options{
		Name: o.Name, BaseURL: o.BaseURL, Path: "chat/completions", Model: o.Model,
		Key: o.Key, KeyVar: o.KeyVar, Header: header, NotOurAPI: "an OpenAI-compatible API",
		HTTP: o.HTTP, Limits: o.Limits, Scripted: o.Scripted,
	})
	if err != nil {
		return nil, err
	}
	head, err := head(o)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", o.Name, err)
	}
	return &Client{wire: w, name: o.Name, stream: o.Stream, head: head, limit: o.LimitField}, nil
}

// Dialect implements [model.Client].
func (c *Client) Dialect() string { return "openai" }

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.wire.Close() }

// Exchange implements [model.Client]. The schema is not a strict one: those would have to
// forbid additional properties and to require all others, which ours need not.
func (c *Client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	return c.schema.Ask(ctx, req, c.exchange)
}

func (c *Client) exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	body, err := wire.Join(c.head, req.Messages, c.tail(req))
	if err != nil {
		return model.Reply{}, fmt.Errorf("ask %s: %w", c.name, err)
	}
	var reply model.Reply
	err = c.wire.Ask(ctx, wire.Call{Body: body, Stream: c.stream, Origin: req.Origin}, func(r io.Reader) error {
		full, err := c.read(r, req)
		if err == nil {
			reply, err = c.reply(full, req)
		}
		return err
	})
	return reply, err
}

// read returns the completion that was sent whole, or that a stream's pieces make.
func (c *Client) read(r io.Reader, req model.Request) (completion, error) {
	if c.stream {
		whole, all := wire.IsObject(r)
		if r = all; !whole {
			return c.pieces(r, req.Stream)
		}
	}
	return wire.Whole(r, c.whole)
}

func head(o Options) ([]byte, error) {
	name, err := rawjson.Encode(o.Model)
	if err != nil {
		return nil, err
	}
	params, err := params(o)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, `{"model":%s`, name)
	if o.Stream {
		out = append(out, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	return append(append(out, params...), `,"messages":[`...), nil
}

// params are the fields of a request that are the same for all of a client's requests.
func params(o Options) ([]byte, error) {
	var out []byte
	ours := []string{"model", "messages", "tools", "stream", "stream_options", "response_format", o.LimitField}
	add := func(name string, value any) {
		raw, _ := json.Marshal(value) // numbers and plain words always encode
		out = fmt.Appendf(out, `,%q:%s`, name, raw)
		ours = append(ours, name)
	}
	p := o.Params
	if p.Temperature != nil {
		add("temperature", *p.Temperature)
	}
	if p.Seed != nil {
		add("seed", *p.Seed)
	}
	switch p.Reasoning {
	case "":
	case "low", "medium", "high":
		add("reasoning_effort", p.Reasoning)
	case "off":
		if o.ReasoningOff == "" {
			return nil, fmt.Errorf("reasoning off: no word of %s for it is known; give its own with --param", o.Name)
		}
		add("reasoning_effort", o.ReasoningOff)
	default:
		return nil, fmt.Errorf("reasoning %q: this API knows low, medium and high", p.Reasoning)
	}
	extra, err := wire.Fields(p.Extra, ours...)
	return append(out, extra...), err
}
