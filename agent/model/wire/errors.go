package wire

import (
	"context"
	"crypto/tls"
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

// Fault makes the error of a failed exchange. The words have to be clean.
func (c *Client) Fault(status int, words, advice string, cause error) *model.Error {
	return &model.Error{Provider: c.opts.Name, Status: status, Message: words, Advice: advice, Cause: cause}
}

// Short is a fault of a reply that ended before it was whole, or that holds nothing: the
// same request may succeed later. A status of 0 says that the connection was at fault.
func (c *Client) Short(status int, words string) *model.Error {
	e := c.Fault(status, words, "", nil)
	e.Again = true
	return e
}

// NotOurs is a fault of a reply that is no reply of the API at all.
func (c *Client) NotOurs(what string, data []byte, cause error) *model.Error {
	return c.Fault(http.StatusOK, what+": "+c.Clean(string(data)), "check that "+c.Where()+" is the base URL of "+c.opts.NotOurAPI, cause)
}

// Reported is a failure that the server tells in data, whatever the HTTP status was. The
// status is the one that the server would have used, or 200 if it gives none.
func (c *Client) Reported(status int, data []byte) *model.Error {
	e := c.Fault(status, c.serverWords(data), "", nil)
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(status))
	}
	if e.Message == "" { // such as 529
		e.Message = "the server gave no reason"
	}
	e.Advice = c.advice(status)
	e.Again = again(status)
	// Some servers count a limit of tokens per minute in words that fit here too.
	if status != http.StatusTooManyRequests && tooLong(status, data) {
		e.TooLong, e.Again = true, false
		e.Advice = "the conversation does not fit into the model's window: compact it, or ask a model with a larger one"
	}
	return e
}

// Where names the base URL as it may be shown: without a query, which may hold a secret.
func (c *Client) Where() string {
	u, err := url.Parse(c.opts.BaseURL)
	if err != nil {
		return "the base URL"
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/")
}

// lost explains an exchange that brought no answer, or not all of one.
func (c *Client) lost(err error) *model.Error {
	e := c.broken(err)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		e.Usage = model.NoUsage() // nothing was sent
	}
	return e
}

func (c *Client) broken(err error) *model.Error {
	if outer := (*url.Error)(nil); errors.As(err, &outer) {
		err = outer.Err // without the URL
	}
	var (
		noHost  *net.DNSError
		dial    *net.OpError
		timeout net.Error
		cert    *tls.CertificateVerificationError
		plain   tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, errTooLarge):
		return c.Fault(http.StatusOK, err.Error(), "", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return c.Fault(0, "connection refused", "is the server running at "+c.Where()+"?", err)
	case errors.As(err, &noHost) && noHost.IsNotFound:
		return c.Fault(0, "no such host: "+noHost.Name, "check the base URL "+c.Where(), err)
	case errors.As(err, &noHost): // the resolver had no answer, which says nothing about the host
		e := c.Fault(0, c.Clean(noHost.Error()), "check the network, and the base URL "+c.Where(), err)
		e.Again = true
		return e
	case errors.As(err, &cert), errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return c.Fault(0, c.Clean(err.Error()), "check the base URL "+c.Where(), err)
	}
	e := c.Fault(0, c.Clean(err.Error()), "", err)
	e.Again = true
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Message = "the connection ended before the reply was whole"
	case errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded):
		e.Message, e.Advice = "the server did not answer in time", "is the server running at "+c.Where()+"?"
	case errors.As(err, &dial) && dial.Op == "dial":
		e.Again, e.Advice = false, "check the base URL "+c.Where()
	}
	return e
}

// refused explains an answer that is no reply, with the server's own words.
func (c *Client) refused(resp *http.Response) *model.Error {
	// What can be read of the body is shown; that it could not be read to its end is not.
	data, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyLimit))
	e := c.Reported(resp.StatusCode, data)
	e.Usage = model.NoUsage()
	if e.Again {
		e.RetryAfter = retryAfter(resp.Header)
	}
	return e
}

// again reports whether a request that failed with this status may succeed later.
func again(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// tooLong reports whether an error says that the conversation does not fit. Providers agree
// on no code for it: these are the words they use.
func tooLong(status int, data []byte) bool {
	if status == http.StatusRequestEntityTooLarge {
		return true
	}
	words := strings.ToLower(string(data))
	for _, w := range []string{
		"context_length_exceeded", "context length", "context window", "context size", "context limit",
		"prompt is too long", "input is too long", "input length exceeds",
	} {
		if strings.Contains(words, w) {
			return true
		}
	}
	return false
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
		return "check that " + key + " holds a valid key for " + c.Where()
	case status == http.StatusNotFound && c.opts.NotFound != "":
		return c.opts.NotFound
	case status == http.StatusNotFound:
		return "check the model name " + strconv.Quote(c.opts.Model) + " and the base URL " + c.Where()
	case status >= 300 && status < 400:
		return "the server redirects, which is not followed: set the base URL it redirects to"
	case status == http.StatusTooManyRequests:
		return "the provider limits requests: wait, or ask for fewer at once"
	case status >= 500:
		return "the provider is in trouble: try again later"
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
			return c.Clean(s)
		}
	}
	return c.Clean(string(data))
}

// Clean makes a foreign text fit for a terminal: one line, bounded, no control or
// invisible formatting characters. A server may repeat the key it was sent; it is masked
// before the text is cut, lest half of it stay.
func (c *Client) Clean(foreign string) string {
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
