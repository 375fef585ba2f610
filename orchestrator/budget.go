package orchestrator

import (
	"sync"

	"skein/agent/model"
)

// budget is the run's allowance of tokens, input and output, shared by all agents. A call
// is granted while what was spent, what others are about to read and what it will read
// itself stay within the limit; so the limit is passed by at most one reply for each agent
// that is at work.
type budget struct {
	limit int64 // 0: none

	mu       sync.Mutex
	spent    int64
	reserved int64
}

// Reserve implements [agent.Budget].
func (b *budget) Reserve(tokens int64) (func(model.Usage), bool) {
	if b.limit == 0 {
		return func(model.Usage) {}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent+b.reserved+tokens > b.limit {
		return nil, false
	}
	b.reserved += tokens
	return func(u model.Usage) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reserved -= tokens
		used := u.Prompt().Plus(u.Output)
		if !used.Known {
			// A reply without figures was not free: what was reserved counts as spent.
			used = model.Tokens(tokens)
		}
		b.spent += used.N
	}, true
}
