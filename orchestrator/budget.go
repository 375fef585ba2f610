package orchestrator

import (
	"errors"
	"fmt"
	"sync"

	"skein/agent"
	"skein/agent/model"
)

// budget is an allowance of tokens, input and output, and of dollars: the run's, shared by all
// agents, or one agent's own. A call is granted while what was spent, what others are about to
// read and what it will read itself stay within it; so it is passed by at most one reply for
// each agent that is at work, its closing one or one before.
type budget struct {
	whose  string  // own or runs
	tokens int64   // 0: no limit
	usd    float64 // 0: no limit

	mu      sync.Mutex
	spent   spending // reserved calls included
	closing spending // the part of it that closing calls took
}

type spending struct {
	tokens int64
	usd    float64
}

func (s spending) plus(t spending) spending { return spending{s.tokens + t.tokens, s.usd + t.usd} }

func (s spending) minus(t spending) spending { return spending{s.tokens - t.tokens, s.usd - t.usd} }

// errSpent is why a closing call is refused.
var errSpent = errors.New("a reply has passed the limit already")

// take reserves, if it fits or is a closing call.
func (b *budget) take(s spending, closing bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.passedLocked(b.spent.plus(s)); err != nil && !closing {
		return err
	}
	b.addLocked(s, closing)
	return nil
}

// add corrects what was spent. It reports whether the limit is passed, closing calls aside.
func (b *budget) add(s spending, closing bool) (passed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addLocked(s, closing)
	return b.passedLocked(b.spent.minus(b.closing)) != nil
}

func (b *budget) addLocked(s spending, closing bool) {
	b.spent = b.spent.plus(s)
	if closing {
		b.closing = b.closing.plus(s)
	}
}

// passedLocked says which limit so much would pass.
func (b *budget) passedLocked(s spending) error {
	switch {
	case b.tokens > 0 && s.tokens > b.tokens:
		return fmt.Errorf("stopped at %s limit of %d tokens", b.whose, b.tokens)
	case b.usd > 0 && s.usd > b.usd:
		return fmt.Errorf("stopped at %s limit of %s", b.whose, model.Dollars(b.usd))
	}
	return nil
}

// near names each limit of which four fifths are used.
func (b *budget) near() (limits []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens > 0 && float64(b.spent.tokens) >= warnedAt*float64(b.tokens) {
		limits = append(limits, fmt.Sprintf("%s %d tokens", yours(b.whose), b.tokens))
	}
	if b.usd > 0 && b.spent.usd >= warnedAt*b.usd {
		limits = append(limits, yours(b.whose)+" "+model.Dollars(b.usd))
	}
	return limits
}

// A purse is what one agent pays from, at the prices of its model: its own budget if it has one,
// then the run's. It belongs to the goroutine that runs the agent.
type purse struct {
	budgets []*budget
	price   *model.Price // set if a budget is limited in dollars
	passed  bool         // a reply of this agent has passed a limit
}

var _ agent.Budget = (*purse)(nil)

// Reserve implements [agent.Budget]: of all budgets, or of none.
func (p *purse) Reserve(tokens int64, closing bool) (func(model.Usage), error) {
	if closing && p.passed {
		return nil, errSpent
	}
	// What is about to be read is taken to come from no cache.
	reading := p.cost(model.Usage{Input: model.Tokens(tokens), CacheRead: model.Tokens(0), Output: model.Tokens(0)}, spending{tokens: tokens})
	for i, b := range p.budgets {
		if err := b.take(reading, closing); err != nil {
			for _, taken := range p.budgets[:i] {
				taken.add(spending{}.minus(reading), closing)
			}
			return nil, err
		}
	}
	return func(u model.Usage) { p.add(p.cost(u, reading).minus(reading), closing) }, nil
}

// Spend implements [agent.Budget].
func (p *purse) Spend(u model.Usage) { p.add(p.cost(u, spending{}), false) }

func (p *purse) add(s spending, closing bool) {
	for _, b := range p.budgets {
		if b.add(s, closing) {
			p.passed = true
		}
	}
}

// cost is what a usage spends. A reply without figures was not free: then it is otherwise.
func (p *purse) cost(u model.Usage, otherwise spending) spending {
	s := otherwise
	if n := u.Prompt().Plus(u.Output); n.Known {
		s.tokens = n.N
	}
	if usd, known := p.price.Most(u); known {
		s.usd = usd
	}
	return s
}
