package orchestrator

import (
	"fmt"
	"strings"

	"skein/agent"
	"skein/agent/model"
	"skein/delegate"
)

// mostDenials is how often the same call is denied to an agent. Who goes on asking for it is not
// going to do anything else: a child ends, and nobody is asked about it again.
const mostDenials = 3

// denials are the calls that were denied to one agent, by the gate or by a person.
type denials struct {
	told  []string // each as reports name it, in the order of the calls
	times map[[2]string]int
	end   *agent.End // set once the same call was denied too often
}

// add takes note of a call that was denied, and of the text that says why.
func (d *denials) add(c model.ToolCall, text string) {
	why, _, _ := strings.Cut(text, "\n")
	why = strings.TrimPrefix(why, c.Name+" refused: ")
	if !strings.HasPrefix(why, saidNo) { // of a person every word counts
		why, _, _ = strings.Cut(why, ". ") // what follows says what to do instead
	}
	d.told = append(d.told, c.Name+": "+strings.TrimSuffix(why, "."))
	if d.times == nil {
		d.times = map[[2]string]int{}
	}
	key := [2]string{c.Name, c.Args}
	if d.times[key]++; d.times[key] >= mostDenials {
		d.end = &agent.End{Stop: agent.Stuck, Cause: fmt.Sprintf("the same %s call was denied %d times", c.Name, d.times[key])}
	}
}

// enough says why nobody is asked about a call any more, "" if somebody is.
func (d *denials) enough(c model.ToolCall) string {
	if d.times[[2]string{c.Name, c.Args}] < mostDenials {
		return ""
	}
	return fmt.Sprintf("this same call was denied %d times, and the user is not asked again"+delegate.GoOn, mostDenials)
}
