package wire

import (
	"fmt"

	"skein/agent/model"
)

// CallIDs returns an id for each call, given the ids as received, none of which occurs twice
// in the conversation. A missing or repeated id is replaced by one that follows from the
// call's position; changed tells that this happened.
func CallIDs(received []string, before []model.Message) (ids []string, changed bool) {
	taken := map[string]bool{}
	for _, m := range before {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	repeats := map[string]int{}
	for i, id := range received {
		if id == "" {
			id, changed = fmt.Sprintf("call_%d_%d", len(before), i+1), true
		}
		for first := id; taken[id]; changed = true {
			if repeats[first]++; repeats[first] == 1 {
				id = first + "x"
			} else {
				id = fmt.Sprintf("%sx%d", first, repeats[first])
			}
		}
		taken[id] = true
		ids = append(ids, id)
	}
	return ids, changed
}
