package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"skein/agent/model"
)

// nameCalls returns an id for each call, none of which occurs twice in the conversation.
// A missing or repeated id is replaced by one that follows from the call's position;
// rewrite tells that this happened.
func nameCalls(calls []receivedCall, before []model.Message) (ids []string, rewrite bool) {
	for i, rc := range calls {
		var id string
		_ = json.Unmarshal(rc.ID, &id) // no id, or one that is no text, is replaced
		for id == "" || slices.Contains(ids, id) || used(id, before) {
			if id == "" {
				id = fmt.Sprintf("call_%d_%d", len(before), i+1)
			} else {
				id += "x"
			}
			rewrite = true
		}
		ids = append(ids, id)
	}
	return ids, rewrite
}

func used(id string, before []model.Message) bool {
	return slices.ContainsFunc(before, func(m model.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c model.ToolCall) bool { return c.ID == id })
	})
}

// withIDs returns the message with the ids of its calls set and every other byte as it
// was. This is the one place where a received message is changed: its results have to name
// the calls, so the calls need names, also in the bytes that are sent back. It happens
// once, on arrival; from then on these are the message's bytes.
func withIDs(message json.RawMessage, ids []string) (json.RawMessage, error) {
	n := 0
	out, err := edit(message, func(key string, value json.RawMessage) (json.RawMessage, error) {
		if key != "tool_calls" {
			return value, nil
		}
		return edit(value, func(_ string, one json.RawMessage) (json.RawMessage, error) {
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
	quoted, err := encode(id)
	if err != nil {
		return nil, err
	}
	found := false
	out, err := edit(one, func(key string, value json.RawMessage) (json.RawMessage, error) {
		if key != "id" {
			return value, nil
		}
		found = true
		return quoted, nil
	})
	if err != nil || found {
		return out, err
	}
	rest := bytes.TrimSpace(one)[1:]
	sep := ","
	if bytes.TrimSpace(rest)[0] == '}' {
		sep = ""
	}
	return slices.Concat([]byte(`{"id":`), quoted, []byte(sep), rest), nil
}

// edit returns an object or array with change applied to each of its values; the bytes
// between the values stay as they are. Elements of an array have no key.
func edit(whole json.RawMessage, change func(key string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(whole))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') && open != json.Delim('[') {
		return nil, fmt.Errorf("found %v where an object or a list was expected", open)
	}
	var out []byte
	done := int64(0) // bytes of whole that out has already
	for dec.More() {
		key := ""
		if open == json.Delim('{') {
			t, err := dec.Token()
			if err != nil {
				return nil, err
			}
			key, _ = t.(string)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		changed, err := change(key, value)
		if err != nil {
			return nil, err
		}
		end := dec.InputOffset()
		out = append(out, whole[done:end-int64(len(value))]...)
		out = append(out, changed...)
		done = end
	}
	return append(out, whole[done:]...), nil
}
