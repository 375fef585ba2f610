package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"skein/agent/model/wire/rawjson"
)

// Fields returns further fields of a request, `,"a":1,"b":2`, in the order of their names.
// Names that the client itself sets are refused: a field that is there twice means
// something else to every server.
func Fields(extra map[string]json.RawMessage, ours ...string) ([]byte, error) {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		switch value := extra[name]; {
		case slices.Contains(ours, name):
			return nil, fmt.Errorf("parameter %q is set in another way", name)
		case !json.Valid(value):
			return nil, fmt.Errorf("parameter %q: its value is no JSON", name)
		default:
			quoted, err := rawjson.Encode(name)
			if err != nil {
				return nil, fmt.Errorf("parameter %q: %w", name, err)
			}
			out = append(append(append(out, ','), quoted...), ':')
			out = append(out, value...)
		}
	}
	return out, nil
}
