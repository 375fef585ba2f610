// Package wire is what the clients of all providers share over HTTP: a request whose body
// refers to the conversation's bytes, limits in time and size, the reading of streams by
// lines, and errors that show the server's own words but never a key.
//
// It knows no provider's dialect. A client calls [Client.Ask] for each exchange.
package wire

import (
	"context"
	"errors"
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
	replyLimit = 64 << 20 // bytes; a larger reply is a fault of the server
	idleConns  = 1024     // a connection for each child that talks to the host at the same time

	// A connection over which nothing came for pingAfter is asked whether it lives, and given
	// up if it does not answer within pingTime. HTTP/2 would send every attempt over a dead
	// one, since all requests to a host share it.
	pingAfter = 15 * time.Second
	pingTime  = 15 * time.Second
)

// Options tell a [Client] whom to ask. Name, BaseURL and Model must be set.
type Options struct {
	Name    string // of the provider, for errors
	BaseURL string
	Path    string // of the resource below BaseURL
	Model   string // for hints

	Key       string      // never shown
	KeyVar    string      // the environment variable the key comes from, for hints
	Header    http.Header // of every request; the key stands in it where the provider wants it
	NotFound  string      // what to do on status 404; default: check the model name and the base URL
	NotOurAPI string      // what the base URL should be one of, for hints, such as "an OpenAI-compatible API"

	HTTP     *http.Client // carries the requests; nil means one of its own
	Limits   Limits
	Scripted bool // tell the provider the request's origin (header Skein-Agent)
}

// A Client sends requests to one resource of one provider. It is safe for concurrent use.
type Client struct {
	opts Options
	url  string
	http *http.Client
}

// New returns a client, or an error if the options cannot work. It does not connect.
func New(o Options) (*Client, error) {
	o.Limits = o.Limits.withDefaults()
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
	return &Client{opts: o, url: base.JoinPath(o.Path).String(), http: carrier(o.HTTP, o.Limits)}, nil
}

// carrier returns an HTTP client that does not follow redirects unless it was given with a
// policy: they would carry the conversation to another host.
func carrier(given *http.Client, limits Limits) *http.Client {
	c := &http.Client{}
	if given != nil {
		*c = *given
	} else {
		c.Transport = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: limits.Connect}).DialContext,
			TLSHandshakeTimeout: limits.Connect,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	if c.CheckRedirect == nil {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c
}

// Close gives up idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Call is one request.
type Call struct {
	Body   Body
	Stream bool         // the answer comes in pieces, and has the time limits of streams
	Origin model.Origin // told to the scripted provider
}

// Ask sends a request and hands the body of a good answer to read, which need not read it
// to its end. Faults are [*model.Error]s, from read too; any other error of read is taken
// for one of the connection. A cancelled ctx is returned as ctx's error.
func (c *Client) Ask(ctx context.Context, call Call, read func(body io.Reader) error) error {
	watched, w := c.opts.Limits.watch(ctx, call.Stream)
	defer w.stop()
	err := c.ask(watched, w, call, read)
	failed, late := (*model.Error)(nil), (*limitError)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && failed.Status != 0:
		return err // the server has spoken; that the rest did not come changes nothing
	case errors.As(context.Cause(watched), &late):
		e := c.Fault(0, late.Error(), "", late)
		e.Again = true
		return e
	}
	return err
}

func (c *Client) ask(ctx context.Context, w *watch, call Call, read func(io.Reader) error) error {
	req, err := c.request(ctx, call)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.opts.Name, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.lost(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		w.set(&limitError{"no end of the refusal", refusalTime})
		return c.refused(resp)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		// A base URL that leads to a site in place of its API answers everything like this.
		w.set(&limitError{"no end of the page", refusalTime})
		page, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
		return c.NotOurs("a web page came in place of a reply", page, nil)
	}
	body := w.body(io.LimitReader(resp.Body, replyLimit+1))
	if err := read(body); err != nil {
		if failed := (*model.Error)(nil); errors.As(err, &failed) {
			return err
		}
		return c.lost(err)
	}
	w.drain(body)
	return nil
}

func (c *Client) request(ctx context.Context, call Call) (*http.Request, error) {
	b := call.Body
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, io.NopCloser(b.Reader()))
	if err != nil {
		return nil, err
	}
	req.ContentLength = b.Size()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(b.Reader()), nil }
	for name, values := range c.opts.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	if call.Stream {
		req.Header.Set("Accept", "text/event-stream, application/x-ndjson")
	} else {
		req.Header.Set("Accept", "application/json")
	}
	if c.opts.Scripted {
		req.Header.Set("Skein-Agent", call.Origin.Agent+"; turn="+strconv.Itoa(call.Origin.Turn))
	}
	return req, nil
}
