// Package ollama asks a model over HTTP in Ollama's own dialect.
//
// Unlike its OpenAI-compatible one, this API lets a request say how large the model's window
// has to be. Left alone, Ollama takes a small one and cuts off the front of a conversation
// that does not fit, without a word: the instructions go first. So every request asks for a
// window that its prompt and its reply fit into, forbids the cutting, and what the server
// says it read is compared with what was sent.
//
// A reply's message is kept byte for byte and sent back unchanged; that of a stream is put
// together from its pieces. Calls have no ids in this dialect, results name the tool: ids are
// given in the neutral view only.
//
// Non-goals: retries (a client that wraps this one), loading and removing models.
package ollama

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"skein/agent/model"
	"skein/agent/model/wire"
)

// Options tell a [Client] whom to ask. BaseURL and Model must be set.
type Options struct {
	BaseURL string // such as "http://localhost:11434"; "/api/chat" is added
	Model   string // as the server names it
	Name    string // of the provider, for errors; default "ollama"
	Key     string // for servers that want one; empty sends no Authorization header
	KeyVar  string // the environment variable the key comes from, for hints

	// HTTP carries the requests; nil means a client of its own. Redirects are not followed
	// unless it has a policy: they would carry the conversation to another host.
	HTTP *http.Client

	Stream bool // ask for the reply in pieces
	Limits wire.Limits

	// Params.Extra are the server's options, such as top_k; keep_alive goes beside them, and
	// num_ctx fixes the window, which otherwise grows with the conversation.
	Params model.Params

	// Warning is told once if the server read less than was sent. It may be nil, and is
	// called by the goroutine whose exchange shows it.
	Warning func(text string)

	Scripted bool // tell the provider the request's origin (header Skein-Agent)
}

// A Client asks one model of one server. It is safe for concurrent use.
type Client struct {
	wire    *wire.Client
	name    string
	stream  bool
	head    []byte // a request body up to its first message
	options []byte // those that are always the same, each with a comma in front
	window  window
	schema  wire.Schemas
	warn    func(string)
	warned  atomic.Bool
}

var _ model.Client = (*Client)(nil)

// New returns a client, or an error if the options cannot work. It does not connect.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		o.Name = "ollama"
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set("Authorization", "Bearer "+o.Key)
	}
	w, err := wire.New(wire.Options{
		Name: o.Name, BaseURL: base(o.BaseURL), Path: "api/chat", Model: o.Model,
		Key: o.Key, KeyVar: o.KeyVar, Header: header, NotOurAPI: "an Ollama server",
		NotFound: "get the model with: ollama pull " + o.Model,
		HTTP:     o.HTTP, Limits: o.Limits, Scripted: o.Scripted,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{wire: w, name: o.Name, stream: o.Stream, warn: o.Warning}
	if err := c.setUp(o); err != nil {
		return nil, fmt.Errorf("set up %s: %w", o.Name, err)
	}
	return c, nil
}

// base leaves out what belongs to Ollama's other API, whose base URL is the better known.
func base(url string) string {
	return strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1")
}

// Dialect implements [model.Client].
func (c *Client) Dialect() string { return "ollama" }

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.wire.Close() }

// Exchange implements [model.Client].
func (c *Client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	return c.schema.Ask(ctx, req, c.exchange)
}

func (c *Client) exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	sent := size(req)
	body, err := wire.Join(c.head, req.Messages, c.tail(req, sent))
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
	if err == nil {
		c.window.learn(sent, reply.Usage.Prompt())
		c.compare(sent, reply.Usage.Prompt())
	}
	return reply, err
}

// read returns the reply that was sent whole, or that a stream's pieces make.
func (c *Client) read(r io.Reader, req model.Request) (received, error) {
	if c.stream {
		return c.pieces(r, req.Stream)
	}
	return wire.Whole(r, c.whole)
}

// leastBytes is how many bytes of a prompt make a token at most. Text has about four, code
// about three; only long runs of blanks come near this.
const leastBytes = 8

// compare warns if the server counts fewer tokens than so many bytes can have.
func (c *Client) compare(sent int64, read model.Count) {
	if c.warn == nil || read.N == 0 || read.N >= sent/leastBytes || c.warned.Swap(true) {
		return
	}
	c.warn(fmt.Sprintf("%s read %d tokens of a prompt of %d bytes: the front of the conversation was cut off; "+
		"a model with a larger window, or a smaller task, is needed", c.name, read.N, sent))
}
