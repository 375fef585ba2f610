package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"skein/agent/model"
	"skein/agent/model/text"
)

// A fallback asks a model that may not take tools: where the first request that offers some is
// refused for them, the same conversation goes on in the text protocol.
type fallback struct {
	native model.Client
	text   model.Client
	notice func(string) // told once

	mu     sync.Mutex
	state  state
	inText map[string]json.RawMessage // tools in the text protocol, by their native form
}

type state int

const (
	unknown state = iota
	takesTools
	wantsText
)

var _ model.Client = (*fallback)(nil)

// newFallback wraps a client.
func newFallback(c model.Client, notice func(string)) *fallback {
	return &fallback{native: c, text: text.Client(c), notice: notice, inText: map[string]json.RawMessage{}}
}

// now returns the client that messages are encoded for.
func (f *fallback) now() (model.Client, state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == wantsText {
		return f.text, f.state
	}
	return f.native, f.state
}

// Dialect implements [model.Client]: that of the messages to come.
func (f *fallback) Dialect() string {
	c, _ := f.now()
	return c.Dialect()
}

// Encode implements [model.Client].
func (f *fallback) Encode(m model.Message) (json.RawMessage, error) {
	c, _ := f.now()
	return c.Encode(m)
}

// EncodeTools implements [model.Client].
func (f *fallback) EncodeTools(tools []model.Tool) (json.RawMessage, error) {
	raw, err := f.native.EncodeTools(tools)
	if err != nil || raw == nil {
		return raw, err
	}
	described, err := f.text.EncodeTools(tools)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inText[string(raw)] = described
	return raw, nil
}

// Exchange implements [model.Client].
func (f *fallback) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	_, s := f.now()
	if s == wantsText {
		return f.exchangeText(ctx, req)
	}
	reply, err := f.native.Exchange(ctx, req)
	if s == takesTools || len(req.Tools) == 0 {
		return reply, err
	}
	switch {
	case err == nil:
		f.settle(takesTools)
	case refusesTools(err):
		decided, first := f.settle(wantsText)
		if first {
			f.notice("the model takes no tools: going on with calls written as text, one at a time (" + err.Error() + ")")
		}
		if decided { // by a sibling perhaps
			return f.exchangeText(ctx, req)
		}
	}
	return reply, err
}

// settle decides, once. It reports whether s is what is decided, and whether it is so from now.
func (f *fallback) settle(s state) (decided, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = f.state == unknown
	if first {
		f.state = s
	}
	return f.state == s, first
}

// exchangeText asks in the text protocol. Messages from before the switch, which are the
// conversation's first ones, are made anew from the neutral view: the same bytes every time.
func (f *fallback) exchangeText(ctx context.Context, req model.Request) (model.Reply, error) {
	f.mu.Lock()
	if described, ok := f.inText[string(req.Tools)]; ok {
		req.Tools = described
	}
	f.mu.Unlock()
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		if m.Dialect == f.text.Dialect() {
			continue
		}
		raw, err := f.text.Encode(m)
		if err != nil {
			return model.Reply{}, err
		}
		req.Messages[i].Raw, req.Messages[i].Dialect = raw, f.text.Dialect()
	}
	return f.text.Exchange(ctx, req)
}

// refusal finds the words in which servers say that they take no tools at all, and not what is
// wrong with one of them.
var refusal = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`(\bnot|n't|\bcannot|\bno endpoints found that) support ((the|any|native) )?["'\x60]?(tools?|functions?)\b`,
	`\b(tools|(tool|function)s?[ -](use|calls?|calling))\b["'\x60]*( (is|are|was|were|params?|parameters?))* (not|un)[ -]?(currently )?(supported|enabled|available)\b`,
	`\btools param requires\b`, // a server that was begun without templates
	`\benable-auto-tool-choice\b`,
}, "|"))

// refusesTools reports whether a server does not take tools. There is no code for it: they say
// so in words.
func refusesTools(err error) bool {
	var failed *model.Error
	if !errors.As(err, &failed) || failed.TooLong {
		return false
	}
	switch failed.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusNotImplemented:
		return refusal.MatchString(failed.Message)
	}
	return false
}
