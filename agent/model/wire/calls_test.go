package wire_test

import (
	"encoding/json"
	"slices"
	"testing"

	"skein/agent/model"
	"skein/agent/model/wire"
)

func TestCallIDs(t *testing.T) {
	before := []model.Message{{}, {Role: model.Assistant, Calls: []model.ToolCall{{ID: "a"}, {ID: "call_2_1"}}}}
	for _, tc := range []struct {
		given, want []string
		changed     bool
	}{
		{[]string{"b", "c"}, []string{"b", "c"}, false},
		{[]string{"", ""}, []string{"call_2_1x", "call_2_2"}, true},
		{[]string{"a", "b", "b", "b"}, []string{"ax", "b", "bx", "bx2"}, true},
		{nil, nil, false},
	} {
		got, changed := wire.CallIDs(tc.given, before)
		if !slices.Equal(got, tc.want) || changed != tc.changed {
			t.Errorf("CallIDs(%q) = %q, %t, want %q, %t", tc.given, got, changed, tc.want, tc.changed)
		}
	}
}

func TestFields(t *testing.T) {
	for _, tc := range []struct {
		extra map[string]json.RawMessage
		want  string
	}{
		{map[string]json.RawMessage{"b": json.RawMessage(`{"x": 1.0}`), "a": json.RawMessage(`"<"`)}, `,"a":"<","b":{"x": 1.0}`},
		{nil, ``},
	} {
		if got, err := wire.Fields(tc.extra, "model"); err != nil || string(got) != tc.want {
			t.Errorf("Fields(%s) = %s, %v, want %s", tc.extra, got, err, tc.want)
		}
	}
	for name, value := range map[string]string{"model": `"m"`, "x": `{`, "y": ``} {
		if got, err := wire.Fields(map[string]json.RawMessage{name: json.RawMessage(value)}, "model"); err == nil {
			t.Errorf("Fields(%s: %s) = %s, want an error", name, value, got)
		}
	}
}
