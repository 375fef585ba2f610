package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"skein/agent/model"
	"skein/agent/model/wire/rawjson"
)

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

// Object gives a call's arguments as the object that some dialects want. Those that are none,
// of a reply in another dialect, are kept as a text in one.
func Object(args string) (json.RawMessage, error) {
	if rawjson.IsObject([]byte(args)) {
		return json.RawMessage(args), nil
	}
	return rawjson.Encode(map[string]string{"arguments": args})
}

// Schema gives a tool's schema, or an error if it is no object: servers refuse the whole
// request then, and do not always say why.
func Schema(t model.Tool) (json.RawMessage, error) {
	schema := bytes.TrimSpace(t.Schema)
	if len(schema) == 0 || schema[0] != '{' {
		return nil, fmt.Errorf("encode tool %s: its schema is no JSON object", t.Name)
	}
	return schema, nil
}

// Count is a counter of a server that may leave it out, or tell nonsense.
func Count(n *int64) model.Count {
	if n == nil {
		return model.Count{}
	}
	return model.Tokens(*n)
}
