package agent

import (
	"fmt"
	"strings"

	"skein/agent/model"
	"skein/tools"
)

// A model that repeats a failing call word for word is told after toldAfter failures, and
// its agent ends as stuck after stuckAfter.
const (
	toldAfter  = 3
	stuckAfter = 5
)

// repeats counts failures of the same call. A success of that call clears its count, and a
// success of any call that may have changed something clears all: a test that failed before
// an edit is worth running after it.
type repeats map[[2]string]int

// see takes note of a result. It returns what to tell the model, and whether to give up.
func (r repeats) see(c model.ToolCall, res tools.Result) (note string, stuck bool) {
	key := [2]string{c.Name, c.Args}
	if !res.IsError {
		delete(r, key)
		if res.Acted {
			clear(r)
		}
		return "", false
	}
	r[key]++
	switch n := r[key]; {
	case n >= stuckAfter:
		return "", true
	case n >= toldAfter:
		return fmt.Sprintf("This same call has now failed %d times. Do something else, or answer with what you have; after %d failures you are stopped.", n, stuckAfter), false
	}
	return "", false
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
