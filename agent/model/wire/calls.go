package wire

import (
	"fmt"
	"slices"

	"skein/agent/model"
)

// CallIDs returns an id for each call, given the ids as received, none of which occurs twice
// in the conversation. A missing or repeated id is replaced by one that follows from the
// call's position; changed tells that this happened.
func CallIDs(received []string, before []model.Message) (ids []string, changed bool) {
	for i, id := range received {
		for id == "" || slices.Contains(ids, id) || used(id, before) {
			if id == "" {
				id = fmt.Sprintf("call_%d_%d", len(before), i+1)
			} else {
				id += "x"
			}
			changed = true
		}
		ids = append(ids, id)
	}
	return ids, changed
}

func used(id string, before []model.Message) bool {
	return slices.ContainsFunc(before, func(m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.ToolCall) bool { return c.ID == id })
	})
}
