package anthropic

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// thinking is how a request asks the model to think before it answers.
type thinking struct {
	field  string // of the request, with a comma in front; empty leaves it to the provider
	budget int    // tokens that come on top of the reply's limit
	effort string // goes into output_config
}

const leastBudget = 1024 // tokens; the API refuses fewer

var budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24576}

// thinkingOf says a level of reasoning in the API's terms. Models from Claude 4.6 on judge by
// themselves how much a question needs and are told an effort, the later ones of them refuse
// a budget; older ones have to be given one. A number of tokens is a budget for all of them.
func thinkingOf(model, reasoning string) (thinking, error) {
	budget, word := budgets[reasoning]
	switch {
	case reasoning == "":
		return thinking{}, nil
	case reasoning == "off":
		return thinking{field: `,"thinking":{"type":"disabled"}`}, nil
	case word && adaptive(model):
		return thinking{field: `,"thinking":{"type":"adaptive"}`, effort: reasoning}, nil
	case !word:
		n, err := strconv.Atoi(reasoning)
		if err != nil || n < leastBudget {
			return thinking{}, fmt.Errorf("reasoning %q: want off, low, medium, high or a number of tokens from %d", reasoning, leastBudget)
		}
		budget = n
	}
	return thinking{field: fmt.Sprintf(`,"thinking":{"type":"enabled","budget_tokens":%d}`, budget), budget: budget}, nil
}

// numbers finds a model's version in names such as claude-opus-4-6, claude-3-7-sonnet-20250219
// and claude-sonnet-4-20250514, whose last number is a date.
var numbers = regexp.MustCompile(`(?:^|\D)(\d{1,2})(?:[-.](\d{1,2}))?(?:\D|$)`)

func adaptive(model string) bool {
	m := numbers.FindStringSubmatch(model)
	if !strings.Contains(model, "claude") || m == nil {
		return false
	}
	major, _ := strconv.Atoi(m[1]) // both are digits, or empty and so zero
	minor, _ := strconv.Atoi(m[2])
	return major > 4 || major == 4 && minor >= 6
}
