package cli

import (
	"fmt"
	"strings"

	"skein/agent/model"
)

// maxTokens is the limit of a reply: what was asked for, at most what the model can write. A
// program or a script has no such limit.
func (m *connected) maxTokens(asked int, verbose bool, say func(string)) int {
	if strings.HasPrefix(m.choice.Model, "script") || strings.HasPrefix(m.choice.Model, "command/") {
		return asked
	}
	more := "; say what it can in the table models of " + m.config.Path
	if !m.row.Known && (verbose || asked > m.row.Output) {
		say(fmt.Sprintf("nothing is known of %s: a window of %d tokens and replies of at most %d are taken for granted%s",
			m.choice.Model, m.row.Window, m.row.Output, more))
	}
	if asked > m.row.Output && m.row.Known {
		say(fmt.Sprintf("%s writes at most %d tokens, so much is asked for in place of %d", m.choice.Model, m.row.Output, asked))
	}
	return min(asked, m.row.Output)
}

// A dollarLimit is what a flag sets in dollars; 0 is none.
type dollarLimit struct {
	flag string
	usd  float64
}

// dollars lists the limits of a run that are in dollars.
func (o runOptions) dollars() []dollarLimit {
	return []dollarLimit{{"--budget-usd", o.budgetUSD}, {"--child-budget-usd", o.childUSD}, {"--confirm-usd", o.confirmUSD}}
}

// inDollars names the first flag that sets a limit in dollars, "" if none does.
func (o runOptions) inDollars() string {
	for _, limit := range o.dollars() {
		if limit.usd > 0 {
			return limit.flag
		}
	}
	return ""
}

// price returns what the model costs, nil where that is not known. The flag that sets a limit in
// dollars, if there is one, needs it.
func (m *connected) price(flag string) (*model.Price, error) {
	if flag != "" && m.row.Price == nil {
		return nil, &usageError{
			command: "run", text: fmt.Sprintf("%s: the prices of %s are not known", flag, m.choice.Model),
			hint: fmt.Sprintf("add to %s, in dollars for a million tokens: models: {%q: {prices: {input: 1.0, cache_read: 0.1, output: 2.0}}}", m.config.Path, m.choice.Model),
		}
	}
	return m.row.Price, nil
}
