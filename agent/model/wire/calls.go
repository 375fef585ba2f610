package wire

import (
	"encoding/json"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/wire/rawjson"
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

// Arguments gives the text of a call's arguments, which are an object or the text of one. A
// call without any has none to give, unless it was cut off before they came: then they are
// not made up.
func Arguments(raw json.RawMessage, cut bool) string {
	var s string
	switch {
	case !rawjson.Given(raw) && !cut:
		return "{}"
	case json.Unmarshal(raw, &s) == nil || len(raw) == 0:
		return s
	}
	return string(raw)
}
