package orchestrator

import (
	"testing"

	"pgregory.net/rapid"

	"skein/agent/model"
)

// Whatever is asked for and used, a budget is passed by at most one reply for each call that
// was under way when it ran out.
func TestBudgetIsPassedByOneReplyEach(t *testing.T) {
	const maxReply = 100
	price := &model.Price{Input: 1e6, CacheRead: 1e6, Output: 1e6} // a dollar a token
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 2000).Draw(t, "limit")
		b := purse{budget: &budget{tokens: limit}}
		if rapid.Bool().Draw(t, "in dollars") {
			b = purse{&budget{usd: float64(limit)}, price}
		}
		type call struct {
			reads int64
			done  func(model.Usage)
		}
		var open []call
		var spent int64
		atGrant := 0 // calls under way when the last one was granted
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "finish") {
				c := open[0]
				open = open[1:]
				reply := rapid.Int64Range(0, maxReply).Draw(t, "reply")
				c.done(model.Usage{Input: model.Tokens(c.reads), CacheRead: model.Tokens(0), Output: model.Tokens(reply)})
				spent += c.reads + reply
				continue
			}
			reads := rapid.Int64Range(0, 300).Draw(t, "reads")
			if done, ok := b.Reserve(reads); ok {
				open = append(open, call{reads, done})
				atGrant = len(open)
			} else if pending := spent + sum(open, func(c call) int64 { return c.reads }); pending+reads <= limit {
				t.Fatalf("refused %d with %d of %d spent or reserved", reads, pending, limit)
			}
			if over := spent + sum(open, func(c call) int64 { return c.reads }) - limit; over > int64(atGrant)*maxReply {
				t.Fatalf("passed by %d, with %d calls under way at the last grant", over, atGrant)
			}
		}
	})
}

func sum[T any](list []T, f func(T) int64) (n int64) {
	for _, v := range list {
		n += f(v)
	}
	return n
}

func TestUnmeasuredRepliesAreNotFree(t *testing.T) {
	b := purse{budget: &budget{tokens: 100}}
	for range 2 {
		done, ok := b.Reserve(40)
		if !ok {
			t.Fatal("refused within the limit")
		}
		done(model.Usage{})
	}
	if _, ok := b.Reserve(40); ok {
		t.Error("granted 120 tokens of 100")
	}
}
