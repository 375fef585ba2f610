package orchestrator

import (
	"sync"

	"skein/agent"
	"skein/agent/model"
)

// budget is the run's allowance, shared by all agents: of tokens, input and output, and of
// dollars. A call is granted while what was spent, what others are about to read and what it
// will read itself stay within it; so it is passed by at most one reply for each agent that
// is at work.
type budget struct {
	tokens int64   // 0: no limit
	usd    float64 // 0: no limit

	mu    sync.Mutex
	spent spending // reserved calls included
}

type spending struct {
	tokens int64
	usd    float64
}

// A purse is what one agent pays from: a budget, at the prices of the agent's model.
type purse struct {
	*budget
	price *model.Price // set if the budget is limited in dollars
}

var _ agent.Budget = purse{}

// Reserve implements [agent.Budget].
func (b purse) Reserve(tokens int64) (func(model.Usage), bool) {
	if b.tokens == 0 && b.usd == 0 {
		return func(model.Usage) {}, true
	}
	// What is about to be read is taken to come from no cache.
	reading := b.cost(model.Usage{Input: model.Tokens(tokens), CacheRead: model.Tokens(0), Output: model.Tokens(0)}, spending{tokens: tokens})
	b.mu.Lock()
	defer b.mu.Unlock()
	after := spending{b.spent.tokens + reading.tokens, b.spent.usd + reading.usd}
	if b.tokens > 0 && after.tokens > b.tokens || b.usd > 0 && after.usd > b.usd {
		return nil, false
	}
	b.spent = after
	return func(u model.Usage) {
		used := b.cost(u, reading)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.spent.tokens += used.tokens - reading.tokens
		b.spent.usd += used.usd - reading.usd
	}, true
}

// Spend implements [agent.Budget].
func (b purse) Spend(u model.Usage) {
	used := b.cost(u, spending{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent.tokens += used.tokens
	b.spent.usd += used.usd
}

// cost is what a usage spends. A reply without figures was not free: then it is otherwise.
func (b purse) cost(u model.Usage, otherwise spending) spending {
	s := otherwise
	if n := u.Prompt().Plus(u.Output); n.Known {
		s.tokens = n.N
	}
	if usd, known := b.price.Most(u); known {
		s.usd = usd
	}
	return s
}
