package orchestrator

// Whose a limit is, in words for reports.
const (
	own  = "its"
	runs = "the run's"
)

// yours is whose a limit is, in words for who has it.
func yours(whose string) string {
	if whose == own {
		return "your"
	}
	return whose
}

// An agent is told of a limit when so much of it is used. It is given no figure of what it used:
// the same replies may take another time, and other tokens where a cache or a count differs.
const warnedAt = 0.8

// openPurse makes what an agent pays from, at the prices of its model. Each child has its own
// budget; what children of its own spend is theirs.
func (n *node) openPurse() *purse {
	r, p := n.run, &purse{price: n.engine.Price}
	if n.depth > 0 && (r.o.ChildBudget > 0 || r.o.ChildBudgetUSD > 0) {
		p.budgets = append(p.budgets, &budget{whose: own, tokens: r.o.ChildBudget, usd: r.o.ChildBudgetUSD})
	}
	p.budgets = append(p.budgets, &r.budget)
	return p
}

// near says, in words for the model, of which limits four fifths are used, each once.
func (n *node) near() (used []string) {
	limits := n.clocks.near()
	for _, b := range n.purse.budgets {
		limits = append(limits, b.near()...)
	}
	for _, limit := range limits {
		if !n.told[limit] {
			n.told[limit] = true
			used = append(used, "more than 80 % of "+limit)
		}
	}
	return used
}
