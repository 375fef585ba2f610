package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"skein/agent/model"
	"skein/agent/model/wire/rawjson"
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
