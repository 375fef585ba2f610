// Package openai asks a model over HTTP in the chat-completions dialect, which OpenAI,
// DeepSeek, OpenRouter, LM Studio, vLLM and many others speak.
//
// A reply's message is kept byte for byte, fields that nobody here knows included, and
// sent back unchanged; a request is its messages' bytes joined by commas. Nothing that was
// encoded once is encoded again, so provider caches see each request begin like the last.
//
// Non-goals: streaming, retries (a client that wraps this one), other dialects.
package openai

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"skein/agent/model"
)

const (
	connectTimeout = 10 * time.Second
	replyTimeout   = 10 * time.Minute // an unstreamed reply says nothing until it is whole
	replyLimit     = 64 << 20         // bytes; a larger reply is a fault of the server
	idleConns      = 16               // children talk to one host at the same time
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

	Timeout  time.Duration // of a whole exchange, default 10 minutes
	Scripted bool          // tell the provider the request's origin (header Skein-Agent)
}

// A Client asks one model of one provider. It is safe for concurrent use.
type Client struct {
	opts Options
	url  string // of the chat-completions resource
	head []byte // a request body up to its first message
	http *http.Client
}

var _ model.Client = (*Client)(nil)

// New returns a client, or an error if the options cannot work. It does not connect.
func New(o Options) (*Client, error) {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.Timeout <= 0 {
		o.Timeout = replyTimeout
	}
	if o.Model == "" {
		return nil, fmt.Errorf("set up %s: no model named", o.Name)
	}
	base, err := url.Parse(o.BaseURL)
	// The URL may hold a password: its text is not repeated.
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("set up %s: the base URL is no http(s) URL", o.Name)
	}
	if base.User != nil {
		return nil, fmt.Errorf("set up %s: the base URL holds a user name or password", o.Name)
	}
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("set up %s: the key holds white space or other characters no key has", o.Name)
	}
	head, err := encode(o.Model)
	if err != nil {
		return nil, fmt.Errorf("set up %s: encode model name: %w", o.Name, err)
	}
	return &Client{
		opts: o,
		url:  base.JoinPath("chat/completions").String(),
		head: fmt.Appendf(nil, `{"model":%s,"messages":[`, head),
		http: carrier(o.HTTP),
	}, nil
}

func carrier(given *http.Client) *http.Client {
	c := &http.Client{}
	if given != nil {
		*c = *given
	} else {
		c.Transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	if c.CheckRedirect == nil {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

// Dialect implements [model.Client].
func (c *Client) Dialect() string { return "openai" }

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Exchange implements [model.Client].
func (c *Client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	limited, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	reply, err := c.exchange(limited, req)
	if err != nil && ctx.Err() != nil {
		return model.Reply{}, ctx.Err()
	}
	return reply, err
}

func (c *Client) exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	hreq, err := c.request(ctx, req)
	if err != nil {
		return model.Reply{}, err
	}
	resp, err := c.http.Do(hreq)
	if err != nil {
		return model.Reply{}, c.lost(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return model.Reply{}, c.refused(resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, replyLimit+1))
	if err != nil {
		return model.Reply{}, c.lost(err)
	}
	if len(data) > replyLimit {
		return model.Reply{}, c.fault(resp.StatusCode, "the reply is larger than 64 MiB", "", nil)
	}
	return c.reply(data, req)
}

func (c *Client) request(ctx context.Context, req model.Request) (*http.Request, error) {
	b, err := newBody(c.head, req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.opts.Name, err)
	}
	hreq, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, io.NopCloser(b.reader()))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.opts.Name, err)
	}
	hreq.ContentLength = b.size()
	hreq.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(b.reader()), nil }
	hreq.Header.Set("Content-Type", "application/json")
	hreq.Header.Set("Accept", "application/json")
	if c.opts.Key != "" {
		hreq.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	if c.opts.Scripted {
		hreq.Header.Set("Skein-Agent", req.Origin.Agent+"; turn="+strconv.Itoa(req.Origin.Turn))
	}
	return hreq, nil
}
