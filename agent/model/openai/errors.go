package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"skein/agent/model"
)

const (
	errorBodyLimit = 64 << 10 // bytes read of an error's body
	wordsLimit     = 500      // characters shown of what a server says
)

func (c *Client) fault(status int, words, advice string, cause error) *model.Error {
	return &model.Error{Provider: c.opts.Name, Status: status, Message: words, Advice: advice, Cause: cause}
}

// where names the base URL as it may be shown: without a query, which may hold a secret.
func (c *Client) where() string {
	u, err := url.Parse(c.url)
	if err != nil {
		return "the base URL"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/chat/completions")
}

// lost explains an exchange that brought no answer, or not all of one.
func (c *Client) lost(err error) *model.Error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // without the URL
	}
	var (
		noHost  *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return c.fault(0, "no whole reply within "+c.opts.Timeout.String(), "", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return c.fault(0, "connection refused", "is the server running at "+c.where()+"?", err)
	case errors.As(err, &noHost):
		return c.fault(0, "no such host: "+noHost.Name, "check the base URL "+c.where(), err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return c.fault(0, "the connection ended before the reply was whole", "", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.fault(0, "the server did not answer in time", "is the server running at "+c.where()+"?", err)
	}
	return c.fault(0, c.clean(err.Error()), "", err)
}

// refused explains an answer that is no reply, with the server's own words.
func (c *Client) refused(resp *http.Response) *model.Error {
	// What can be read of the body is shown; that it could not be read to its end is not.
	data, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
	words := c.serverWords(data)
	if words == "" {
		words = strings.ToLower(http.StatusText(resp.StatusCode))
	}
	return c.fault(resp.StatusCode, words, c.advice(resp.StatusCode), nil)
}

func (c *Client) advice(status int) string {
	key := c.opts.KeyVar
	if key == "" {
		key = "the key of " + c.opts.Name
	}
	switch {
	case status == http.StatusUnauthorized && c.opts.Key == "":
		return "set " + key
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "check that " + key + " holds a valid key for " + c.where()
	case status == http.StatusNotFound:
		return "check the model name " + strconv.Quote(c.opts.Model) + " and the base URL " + c.where()
	case status >= 300 && status < 400:
		return "the server redirects, which is not followed: set the base URL it redirects to"
	case status == http.StatusTooManyRequests:
		return "the provider limits requests: wait, or ask for fewer at once"
	}
	return ""
}

// serverWords finds the message in an error body, whichever of the usual shapes it has.
func (c *Client) serverWords(data []byte) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	// A body of another shape leaves the fields empty, and is shown as it is.
	_ = json.Unmarshal(data, &shape)
	var inner struct {
		Message string `json:"message"`
	}
	var plain string
	_ = json.Unmarshal(shape.Error, &inner)
	_ = json.Unmarshal(shape.Error, &plain)
	for _, s := range []string{inner.Message, plain, shape.Message, shape.Detail} {
		if s != "" {
			return c.clean(s)
		}
	}
	return c.clean(string(data))
}

// clean makes a foreign text fit for a terminal: one line, bounded, no control or
// invisible formatting characters. A server may repeat the key it was sent; it is masked
// before the text is cut, lest half of it stay.
func (c *Client) clean(foreign string) string {
	if c.opts.Key != "" {
		foreign = strings.ReplaceAll(foreign, c.opts.Key, "[key]")
	}
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(foreign) {
		if n > 0 {
			b.WriteByte(' ')
		}
		for _, r := range word {
			if n++; n > wordsLimit {
				return b.String() + "…"
			}
			if unicode.IsPrint(r) && r != unicode.ReplacementChar {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
