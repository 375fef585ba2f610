package openai

import (
	"encoding/json"
	"fmt"

	"skein/agent/model/wire/rawjson"
)

// withIDs returns the message with the ids of its calls set and every other byte as it
// was. This is the one place where a received message is changed: its results have to name
// the calls, so the calls need names, also in the bytes that are sent back. It happens
// once, on arrival; from then on these are the message's bytes.
func withIDs(message json.RawMessage, ids []string) (json.RawMessage, error) {
	n := 0
	out, err := rawjson.Edit(message, func(key string, value json.RawMessage) (json.RawMessage, error) {
		if key != "tool_calls" {
			return value, nil
		}
		return rawjson.Edit(value, func(_ string, one json.RawMessage) (json.RawMessage, error) {
			n++
			if n > len(ids) {
				return one, nil
			}
			return withID(one, ids[n-1])
		})
	})
	if err == nil && n != len(ids) { // the field stands there twice, or in capital letters
		err = fmt.Errorf("found %d calls where %d were read", n, len(ids))
	}
	return out, err
}

func withID(one json.RawMessage, id string) (json.RawMessage, error) {
	quoted, err := rawjson.Encode(id)
	if err != nil {
		return nil, err
	}
	return rawjson.SetField(one, "id", quoted)
}
