// Package retry asks a model again when an exchange failed for a reason that may pass.
//
// It waits exponentially longer with each failure, never shorter than the server asked,
// and gives up after a while with the last error. An answer that would be the same next
// time (a wrong key, a request that is too long) ends at once.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"

	"skein/agent/model"
)

// Options say how patient a client is. The zero value is of use as it is.
type Options struct {
	// For is how long after the first failure of an exchange another attempt may begin,
	// default 5 minutes; below zero nothing is tried again. It is counted from there, not
	// from the beginning, so that a long stream that breaks at its end gets its chance.
	For time.Duration

	First   time.Duration // the first wait, default half a second; each is twice the one before
	Longest time.Duration // what the waits grow to, default one minute

	// Rand gives numbers from 0 to 1 for the jitter; nil means random ones. It may be
	// called from several goroutines at once.
	Rand func() float64
}

const (
	defaultFor     = 5 * time.Minute
	defaultFirst   = 500 * time.Millisecond
	defaultLongest = time.Minute

	// jitter is the part of a wait that may be added to it. It only adds: what the server
	// asked for is a lower bound.
	jitter = 0.25

	// emptyLimit is how many empty replies end an exchange. Unlike other failures each is
	// paid for, and a model that says nothing so often will say nothing again.
	emptyLimit = 3
)

// Client returns a client that asks c, and asks again where that may help. Every attempt
// that is followed by another is told to the request's Attempt; what was streamed before
// it belongs to no reply and is to be forgotten. The last error is returned, with what was
// tried in its hint.
func Client(c model.Client, o Options) model.Client {
	if o.For == 0 {
		o.For = defaultFor
	}
	if o.First <= 0 {
		o.First = defaultFirst
	}
	if o.Longest <= 0 {
		o.Longest = defaultLongest
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return &client{Client: c, opts: o}
}

// A client encodes as the one it wraps.
type client struct {
	model.Client
	opts Options
}

// Exchange implements [model.Client].
func (c *client) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	w := newWaits(c.opts)
	attempts, empty := 0, 0
	ask := func() (model.Reply, error) {
		attempts++
		reply, err := c.Client.Exchange(ctx, req)
		if err == nil && isEmpty(reply) {
			empty++
			err = &model.Error{
				Provider: c.Dialect(), Message: "the reply is empty", Again: empty < emptyLimit,
				Advice: fmt.Sprintf("it was empty %d times: ask in other words, or try another model", empty),
				Usage:  reply.Usage,
			}
		}
		if err == nil {
			return reply, nil
		}
		failed, again := passing(err)
		if !again {
			return model.Reply{}, backoff.Permanent(err)
		}
		w.failed(failed.RetryAfter)
		return model.Reply{}, err
	}
	tell := func(err error, wait time.Duration) {
		if failed, _ := passing(err); req.Attempt != nil {
			req.Attempt(model.Attempt{Number: attempts, Err: err, Wait: wait, Usage: failed.Usage})
		}
	}
	reply, err := backoff.RetryNotifyWithData(ask, backoff.WithContext(w, ctx), tell)
	if failed, again := passing(err); again && c.opts.For > 0 {
		err = c.gaveUp(failed, attempts, w)
	}
	return reply, err
}

// passing reports whether the same request may succeed later.
func passing(err error) (failed *model.Error, again bool) {
	again = errors.As(err, &failed) && failed.Again && !failed.TooLong
	return failed, again
}

// isEmpty reports whether the model stopped by itself without having said anything. A
// reply that was cut off or refused is none the model would give better next time.
func isEmpty(r model.Reply) bool {
	return r.Message.Text == "" && len(r.Message.Calls) == 0 && (r.Finish == model.FinishStop || r.Finish == model.FinishToolCalls)
}

// gaveUp is the last error with the reason why it is the last.
func (c *client) gaveUp(last *model.Error, attempts int, w *waits) error {
	why := fmt.Sprintf("gave up after %d attempts in %s (--retry-for)", attempts, w.passed().Round(time.Second/10))
	if w.asked > max(0, w.left()) {
		why = fmt.Sprintf("the server asks to wait %s, longer than --retry-for %s leaves", w.asked, c.opts.For)
	}
	e := *last
	if e.Advice == "" {
		e.Advice = why
	} else {
		e.Advice = why + "; " + e.Advice
	}
	return &e
}
