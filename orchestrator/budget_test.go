package orchestrator

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"skein/agent/model"
)

// spender is an agent as its budgets see it: one call at a time, and a closing one after the
// first refusal, if it had a call before.
type spender struct {
	purse   *purse
	own     *budget // nil: none
	open    func(model.Usage)
	reads   int64
	calls   int
	closing bool
	ended   bool
	largest int64 // of its calls
	spent   int64 // what is open included
}

func (s *spender) ask(reads int64) (granted bool) {
	done, err := s.purse.Reserve(reads, s.closing)
	if err != nil {
		s.ended = s.closing || s.calls == 0
		s.closing = true
		return false
	}
	s.open, s.reads = done, reads
	s.spent += reads
	s.calls++
	s.largest = max(s.largest, reads)
	return true
}

func (s *spender) answer(reply int64) {
	s.open(model.Usage{Input: model.Tokens(s.reads), CacheRead: model.Tokens(0), Output: model.Tokens(reply)})
	s.spent += reply
	s.largest = max(s.largest, s.reads+reply)
	s.open, s.ended = nil, s.closing
}

// Whatever agents ask for and use at the same time, and whichever of two limits binds first, no
// budget is passed by more than one call of each of them: its closing one, or a reply before.
func TestBudgetsArePassedByOneReplyEach(t *testing.T) {
	price := &model.Price{Input: 1e6, CacheRead: 1e6, Output: 1e6} // a dollar a token
	rapid.Check(t, func(t *rapid.T) {
		draw := func(whose, name string, least int64) *budget {
			n := rapid.Int64Range(least, 2000).Draw(t, name)
			if rapid.Bool().Draw(t, name+" in dollars") {
				return &budget{whose: whose, usd: float64(n)}
			}
			return &budget{whose: whose, tokens: n}
		}
		run := draw(runs, "limit of the run", 1)
		agents := make([]*spender, rapid.IntRange(1, 6).Draw(t, "agents"))
		for i := range agents {
			s := &spender{purse: &purse{price: price}}
			if rapid.Bool().Draw(t, "own limit") {
				s.own = draw(own, "limit", 0)
				s.purse.budgets = append(s.purse.budgets, s.own)
			}
			s.purse.budgets = append(s.purse.budgets, run)
			agents[i] = s
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			s := rapid.SampledFrom(agents).Draw(t, "agent")
			switch {
			case s.ended:
			case s.open != nil:
				s.answer(rapid.Int64Range(0, 100).Draw(t, "reply"))
			default:
				first := !s.closing
				reads := rapid.Int64Range(0, 300).Draw(t, "reads")
				if granted := s.ask(reads); !granted && first && fits(run, sum(agents), reads) && fits(s.own, s.spent, reads) {
					t.Fatalf("refused %d with %d spent of %v, %d of %v", reads, sum(agents), run, s.spent, s.own)
				}
			}
			var may int64
			for _, s := range agents {
				may += s.largest
				if over := beyond(s.own, s.spent); over > s.largest {
					t.Fatalf("an agent passed its own limit by %d, its largest call was %d", over, s.largest)
				}
			}
			if over := beyond(run, sum(agents)); over > may {
				t.Fatalf("the run's limit was passed by %d, the largest calls of all were %d", over, may)
			}
		}
		// None of the books holds anything but what was spent.
		if got := run.spent.tokens; got != sum(agents) {
			t.Fatalf("the run's budget says %d, spent were %d", got, sum(agents))
		}
		for _, s := range agents {
			if s.own != nil && s.own.spent.tokens != s.spent {
				t.Fatalf("an agent's budget says %d, spent were %d", s.own.spent.tokens, s.spent)
			}
		}
	})
}

func sum(agents []*spender) (n int64) {
	for _, s := range agents {
		n += s.spent
	}
	return n
}

// beyond is by how much a limit is passed.
func beyond(b *budget, spent int64) int64 {
	switch {
	case b != nil && b.tokens > 0:
		return spent - b.tokens
	case b != nil && b.usd > 0:
		return spent - int64(b.usd)
	}
	return 0
}

func fits(b *budget, spent, more int64) bool { return beyond(b, spent+more) <= 0 }

func TestUnmeasuredRepliesAreNotFree(t *testing.T) {
	p := &purse{budgets: []*budget{{whose: runs, tokens: 100}}}
	for range 2 {
		done, err := p.Reserve(40, false)
		if err != nil {
			t.Fatalf("refused within the limit: %v", err)
		}
		done(model.Usage{})
	}
	if _, err := p.Reserve(40, false); err == nil || err.Error() != "stopped at the run's limit of 100 tokens" {
		t.Errorf("Reserve(120 tokens of 100) = %v", err)
	}
}

// A closing call passes a limit that no reply has passed before, and only once the others know.
func TestClosingCalls(t *testing.T) {
	shared := &budget{whose: runs, tokens: 100}
	a, b := &purse{budgets: []*budget{shared}}, &purse{budgets: []*budget{shared}}
	usage := func(in, out int64) model.Usage {
		return model.Usage{Input: model.Tokens(in), CacheRead: model.Tokens(0), Output: model.Tokens(out)}
	}
	first, err := a.Reserve(60, false)
	if err != nil {
		t.Fatal(err)
	}
	last, err := b.Reserve(90, true)
	if err != nil {
		t.Fatalf("closing call refused: %v", err)
	}
	first(usage(60, 10)) // within the limit but for b's closing call: that is not a's doing
	last(usage(90, 10))
	if _, err := a.Reserve(1, false); err == nil {
		t.Error("a call is granted where closing calls have passed the limit")
	}
	done, err := a.Reserve(70, true)
	if err != nil {
		t.Errorf("the other's closing call refused: %v", err)
	} else {
		done(usage(70, 10))
	}
	c := &purse{budgets: []*budget{{whose: own, tokens: 100}}}
	if done, err = c.Reserve(90, false); err != nil {
		t.Fatal(err)
	}
	done(usage(90, 20))
	if _, err := c.Reserve(1, true); err == nil {
		t.Error("a closing call is granted to an agent of which a reply has passed the limit")
	}
}

// An agent is warned once of each limit of which four fifths are used.
func TestNear(t *testing.T) {
	r := &run{budget: budget{whose: runs, usd: 1}}
	r.o.ChildBudget = 1000
	price := &model.Price{Input: 1e3, CacheRead: 1e3, Output: 1e3} // 1000 tokens are a dollar
	n := &node{run: r, depth: 1, engine: &engine{ChildModel: ChildModel{Price: price}}, told: map[string]bool{}}
	n.purse = n.openPurse()
	for _, tt := range []struct {
		spend, others int64
		want          []string
	}{
		{790, 0, nil},
		{20, 0, []string{"more than 80 % of your 1000 tokens", "more than 80 % of the run's $1.00"}},
		{50, 100, nil},
	} {
		n.purse.Spend(model.Usage{Input: model.Tokens(tt.spend), CacheRead: model.Tokens(0), Output: model.Tokens(0)})
		if got := n.near(); !slices.Equal(got, tt.want) {
			t.Errorf("near() = %q, want %q", got, tt.want)
		}
	}
}
