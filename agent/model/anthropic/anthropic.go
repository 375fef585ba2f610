// Package anthropic asks a model over HTTP in the dialect of Anthropic's Messages API.
//
// The raw form of a message is its list of content blocks. A reply's list is kept as it was
// received, thinking blocks and their signatures included, and sent back byte for byte. The
// dialect wants speakers to take turns: neighbouring user messages and tool results are
// joined when a request is built, and the transcript keeps them apart.
//
// Prompts are cached up to breakpoints: one on the tools and one on the system message stand
// in every request, a third moves with the conversation's end. The moving one is written
// into the request only, so the messages' own bytes never change.
//
// Non-goals: retries (a client that wraps this one), seeds (the API has none), tools that
// run at the provider's.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"skein/agent/model"
	"skein/agent/model/wire"
	"skein/agent/model/wire/rawjson"
)

const (
	version   = "2023-06-01" // of the API
	maxTokens = 8192         // of a reply, where the request has no limit: the API wants one
)

// Options tell a [Client] whom to ask. BaseURL and Model must be set.
type Options struct {
	BaseURL string // such as "https://api.anthropic.com"; "/v1/messages" is added
	Model   string // as the provider names it
	Name    string // of the provider, for errors; default "anthropic"
	Key     string // empty sends no x-api-key header
	KeyVar  string // the environment variable the key comes from, for hints

	// HTTP carries the requests; nil means a client of its own. Redirects are not followed
	// unless it has a policy: they would carry the conversation to another host.
	HTTP *http.Client

	Stream bool // ask for the reply in pieces
	Limits wire.Limits
	Params model.Params

	Scripted bool // tell the provider the request's origin (header Skein-Agent)
}

// A Client asks one model of one provider. It is safe for concurrent use.
type Client struct {
	wire     *wire.Client
	name     string
	stream   bool
	head     []byte // a request body up to the fields that differ between requests
	thinking thinking
	schema   wire.Schemas
}

var _ model.Client = (*Client)(nil)

// New returns a client, or an error if the options cannot work. It does not connect.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		o.Name = "anthropic"
	}
	header := http.Header{}
	header.Set("Anthropic-Version", version)
	if o.Key != "" {
		header.Set("X-Api-Key", o.Key)
	}
	w, err := wire.New(wire.Options{
		// Base URLs are given with and without the version.
		Name: o.Name, BaseURL: strings.TrimSuffix(strings.TrimSuffix(o.BaseURL, "/"), "/v1"), Path: "v1/messages", Model: o.Model,
		Key: o.Key, KeyVar: o.KeyVar, Header: header, NotOurAPI: "an Anthropic-compatible API",
		HTTP: o.HTTP, Limits: o.Limits, Scripted: o.Scripted,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{wire: w, name: o.Name, stream: o.Stream}
	if c.thinking, err = thinkingOf(o.Model, o.Params.Reasoning); err == nil {
		c.head, err = head(o, c.thinking)
	}
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", o.Name, err)
	}
	return c, nil
}

func head(o Options, th thinking) ([]byte, error) {
	if o.Params.Seed != nil {
		return nil, errors.New("this API has no seed")
	}
	name, err := rawjson.Encode(o.Model)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, `{"model":%s`, name)
	if o.Stream {
		out = append(out, `,"stream":true`...)
	}
	ours := []string{"model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "thinking", "output_config"}
	if t := o.Params.Temperature; t != nil {
		value, err := rawjson.Encode(*t)
		if err != nil {
			return nil, err
		}
		out = fmt.Appendf(out, `,"temperature":%s`, value)
		ours = append(ours, "temperature")
	}
	extra, err := wire.Fields(o.Params.Extra, ours...)
	return append(append(out, th.field...), extra...), err
}

// Dialect implements [model.Client].
func (c *Client) Dialect() string { return "anthropic" }

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.wire.Close() }

// Exchange implements [model.Client]. A request without calls still describes its tools, as
// the API wants it where the conversation holds calls. A schema that the API does not take,
// such as one whose objects do not forbid additional properties, is left out.
func (c *Client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	return c.schema.Ask(ctx, req, c.exchange)
}

func (c *Client) exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	body, err := c.body(req)
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

// read returns the message that was sent whole, or that a stream's pieces make.
func (c *Client) read(r io.Reader, req model.Request) (message, error) {
	if c.stream {
		whole, all := wire.IsObject(r)
		if r = all; !whole {
			return c.pieces(r, req.Stream)
		}
	}
	return wire.Whole(r, c.whole)
}
