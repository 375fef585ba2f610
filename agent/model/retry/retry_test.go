package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"skein/agent/model"
	"skein/agent/model/retry"
)

// An outcome is what one attempt brings, after how long.
type outcome struct {
	reply model.Reply
	err   error
	takes time.Duration
	say   string // streamed before
}

// scripted answers with its outcomes, the last one again and again, and notes when it was asked.
type scripted struct {
	outcomes []outcome
	start    time.Time
	asked    []time.Duration
}

var _ model.Client = (*scripted)(nil)

func (s *scripted) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	o := s.outcomes[min(len(s.asked), len(s.outcomes)-1)]
	s.asked = append(s.asked, time.Since(s.start))
	if req.Stream != nil {
		req.Stream(model.Delta{Text: o.say})
	}
	select {
	case <-time.After(o.takes):
		return o.reply, o.err
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
}

func (s *scripted) Encode(m model.Message) (json.RawMessage, error) { return json.Marshal(m.Text) }

func (s *scripted) EncodeTools(t []model.Tool) (json.RawMessage, error) { return json.Marshal(len(t)) }
func (s *scripted) Dialect() string                                     { return "scripted" }
func play(outcomes ...outcome) *scripted                                { return &scripted{outcomes: outcomes, start: time.Now()} }

func fails(status int, after time.Duration) outcome {
	again := status == 429 || status >= 500
	return outcome{err: &model.Error{Provider: "p", Status: status, Message: "the server's words", Again: again, RetryAfter: after, Usage: model.NoUsage()}}
}

var (
	done   = outcome{reply: model.Reply{Message: model.Message{Text: "done"}, Finish: model.FinishStop}}
	broken = outcome{err: &model.Error{Provider: "p", Message: "ended early", Again: true}}
	silent = outcome{reply: model.Reply{Message: model.Message{Raw: json.RawMessage(`{}`)}, Finish: model.FinishStop}}
)

func always(n float64) func() float64 { return func() float64 { return n } }

func TestWhatIsTriedAgain(t *testing.T) {
	with := func(e model.Error) outcome { e.Provider, e.Message = "p", "words"; return outcome{err: &e} }
	finish := func(f model.Finish) outcome { return outcome{reply: model.Reply{Finish: f}} }
	for _, tc := range []struct {
		name  string
		first outcome
		again bool
	}{
		{"a refusal for now", fails(429, 0), true},
		{"of any status", with(model.Error{Status: 408, Again: true}), true},
		{"the connection broke", broken, true},
		{"garbage of status 200", with(model.Error{Status: 200, Again: true}), true},
		{"wrapped", outcome{err: fmt.Errorf("recorded: %w", broken.err)}, true},
		{"empty reply", silent, true},
		{"empty reply that ends in calls", finish(model.FinishToolCalls), true},
		{"a refusal for good", fails(400, 0), false},
		{"a refusal for good that says when", fails(401, time.Second), false},
		{"a server's trouble that will not pass", with(model.Error{Status: 501}), false},
		{"too long", with(model.Error{Status: 500, Again: true, TooLong: true}), false},
		{"no reason to hope", with(model.Error{Status: 200}), false},
		{"the harness's own fault", outcome{err: errors.New("message 3 was not encoded")}, false},
		{"cut off without text", finish(model.FinishLength), false},
		{"refused", finish(model.FinishOther), false},
		{"only a call", outcome{reply: model.Reply{Message: model.Message{Calls: []model.ToolCall{{}}}, Finish: model.FinishToolCalls}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := play(tc.first, done)
				reply, err := retry.Client(s, retry.Options{}).Exchange(t.Context(), model.Request{})
				want := 1
				if tc.again {
					want = 2
				}
				if len(s.asked) != want {
					t.Errorf("the model was asked %d times, want %d", len(s.asked), want)
				}
				switch {
				case tc.again && (err != nil || reply.Message.Text != "done"):
					t.Errorf("Exchange = %q, %v, want done", reply.Message.Text, err)
				case !tc.again && !errors.Is(err, tc.first.err):
					t.Errorf("Exchange = %v, want the first outcome, %v", err, tc.first.err)
				}
			})
		})
	}
}

func TestRetryAfterIsALowerBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Float64Range(0, 1).Draw(rt, "rand")
		synctest.Test(t, func(t *testing.T) {
			s := play(fails(429, 2*time.Second), done)
			if _, err := retry.Client(s, retry.Options{Rand: always(n)}).Exchange(t.Context(), model.Request{}); err != nil {
				t.Fatalf("Exchange = %v", err)
			}
			if wait := s.asked[1]; wait < 2*time.Second || wait > 2500*time.Millisecond {
				t.Errorf("asked again after %v, want 2 to 2.5 s", wait)
			}
		})
	})
}

func TestWaitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := play(fails(500, 0), broken, fails(503, 0), fails(503, 3*time.Second), fails(503, 0), fails(503, 0), done)
		var told []model.Attempt
		o := retry.Options{First: time.Second, Longest: 10 * time.Second, Rand: always(0)}
		reply, err := retry.Client(s, o).Exchange(t.Context(), model.Request{Attempt: func(a model.Attempt) { told = append(told, a) }})
		if err != nil || reply.Message.Text != "done" {
			t.Fatalf("Exchange = %q, %v, want done", reply.Message.Text, err)
		}
		at := time.Duration(0)
		for i, wait := range []time.Duration{1, 2, 4, 8, 10, 10} {
			if got := told[i]; got.Number != i+1 || got.Wait != wait*time.Second || !errors.Is(got.Err, s.outcomes[i].err) {
				t.Errorf("attempt %d was told as %d, %v, wait %v, want %v, wait %d s", i+1, got.Number, got.Err, got.Wait, s.outcomes[i].err, wait)
			}
			if at += wait * time.Second; s.asked[i+1] != at {
				t.Errorf("attempt %d came after %v, want %v", i+2, s.asked[i+1], at)
			}
		}
		if len(told) != 6 {
			t.Errorf("%d attempts were told, want the 6 that failed", len(told))
		}
	})
}

func TestAttemptsTellWhatTheyCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := model.Usage{Input: model.Tokens(100), Output: model.Tokens(7)}
		empty := silent
		empty.reply.Usage = cost
		var told []model.Usage
		_, err := retry.Client(play(fails(503, 0), empty, broken, empty, empty), retry.Options{}).Exchange(t.Context(), model.Request{
			Attempt: func(a model.Attempt) { told = append(told, a.Usage) },
		})
		if want := []model.Usage{model.NoUsage(), cost, {}, cost}; !slices.Equal(told, want) {
			t.Errorf("attempts cost %v, want %v", told, want)
		}
		// The last one is told by the error alone.
		if failed := (*model.Error)(nil); !errors.As(err, &failed) || failed.Usage != cost {
			t.Errorf("Exchange = %+v, want an error with the cost of the last attempt", err)
		}
	})
}

func TestStreamOfAFailedAttemptIsNoReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := broken, done
		first.say, second.say = "half a rep", "done"
		s := play(first, second)
		var log []string
		reply, err := retry.Client(s, retry.Options{}).Exchange(t.Context(), model.Request{
			Stream:  func(d model.Delta) { log = append(log, d.Text) },
			Attempt: func(model.Attempt) { log = append(log, "[again]") },
		})
		if err != nil || reply.Message.Text != "done" {
			t.Errorf("Exchange = %q, %v, want done alone", reply.Message.Text, err)
		}
		if got := strings.Join(log, " "); got != "half a rep [again] done" {
			t.Errorf("heard %q, want the failure told between the two streams", got)
		}
	})
}

func TestCancelDuringAWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first outcome
	}{{"waiting", fails(429, 30*time.Second)}, {"asking", outcome{takes: time.Hour}}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			s := play(tc.first, done)
			_, err := retry.Client(s, retry.Options{}).Exchange(ctx, model.Request{})
			var failed *model.Error
			if !errors.Is(err, context.Canceled) || errors.As(err, &failed) {
				t.Errorf("%s: Exchange = %v, want the context's error", tc.name, err)
			}
			if took := time.Since(s.start) - time.Second; took > 100*time.Millisecond {
				t.Errorf("%s: Exchange returned %v after the cancel, want at most 100 ms", tc.name, took)
			}
			if len(s.asked) != 1 {
				t.Errorf("%s: the model was asked %d times, want once", tc.name, len(s.asked))
			}
		})
	}
}

func TestGivesUp(t *testing.T) {
	long := fails(500, 0)
	long.takes = 10 * time.Minute
	for _, tc := range []struct {
		name  string
		opts  retry.Options
		first outcome
		asked int
		after time.Duration // at most
		hint  string
	}{
		{"limit", retry.Options{For: time.Minute}, fails(503, 0), 7, time.Minute, "gave up after 7 attempts in 31.5s (--retry-for)"},
		{"default limit", retry.Options{}, fails(503, 0), 11, 5 * time.Minute, "gave up after 11 attempts in 4m3.5s (--retry-for)"},
		{"never", retry.Options{For: -1}, fails(503, 0), 1, 0, ""},
		{"the server asks for too much", retry.Options{}, fails(429, time.Hour), 1, 0, "the server asks to wait 1h0m0s, longer than --retry-for 5m0s leaves"},
		{"absurd time", retry.Options{}, fails(429, 1<<63-1), 1, 0, "the server asks to wait"},
		{"counted from the first failure", retry.Options{For: time.Minute}, long, 2, 10*time.Minute + 500*time.Millisecond + 10*time.Minute, "gave up after 2 attempts"},
		{"nothing said", retry.Options{}, silent, 3, 1500 * time.Millisecond, "it was empty 3 times"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.opts.Rand = always(0)
				s := play(tc.first)
				reply, err := retry.Client(s, tc.opts).Exchange(t.Context(), model.Request{})
				var failed *model.Error
				if !errors.As(err, &failed) || !strings.HasPrefix(failed.Hint(), tc.hint) {
					t.Fatalf("Exchange = %v, want an error with the hint %q", err, tc.hint)
				}
				if tc.first.err != nil && failed.Message != "the server's words" || len(reply.Message.Raw) > 0 {
					t.Errorf("Exchange = %v, %v, want the server's words and no reply", reply, err)
				}
				if took := time.Since(s.start); len(s.asked) != tc.asked || took > tc.after {
					t.Errorf("gave up after %d attempts and %v, want %d and at most %v", len(s.asked), took, tc.asked, tc.after)
				}
			})
		})
	}
}

// TestEveryWaitIsWithinTheLimit states for any server: no attempt begins later than the
// limit allows, none earlier than the server asked.
func TestEveryWaitIsWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var outcomes []outcome
		for range rapid.IntRange(1, 8).Draw(rt, "failures") {
			outcomes = append(outcomes, fails(503, time.Duration(rapid.Int64Range(0, 90).Draw(rt, "asked"))*time.Second))
		}
		limit := time.Duration(rapid.Int64Range(1, 300).Draw(rt, "limit")) * time.Second
		n := rapid.Float64Range(0, 1).Draw(rt, "rand")
		synctest.Test(t, func(t *testing.T) {
			s := play(append(outcomes, done)...)
			_, _ = retry.Client(s, retry.Options{For: limit, Rand: always(n)}).Exchange(t.Context(), model.Request{})
			for i, at := range s.asked[1:] {
				var failed *model.Error
				errors.As(outcomes[i].err, &failed)
				if wait := at - s.asked[i]; wait < failed.RetryAfter || at > limit {
					t.Errorf("attempt %d came %v after the last and %v after the first, want at least %v and at most %v", i+2, wait, at, failed.RetryAfter, limit)
				}
			}
		})
	})
}

func TestEncodesAsTheClientItWraps(t *testing.T) {
	c := retry.Client(play(done), retry.Options{})
	raw, err := c.Encode(model.Message{Text: "x"})
	tools, toolsErr := c.EncodeTools(make([]model.Tool, 2))
	if err := errors.Join(err, toolsErr); err != nil || string(raw) != `"x"` || string(tools) != "2" || c.Dialect() != "scripted" {
		t.Errorf("Encode, EncodeTools, Dialect = %s, %s, %s, %v, want those of the client", raw, tools, c.Dialect(), err)
	}
}
