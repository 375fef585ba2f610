package model

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestMessageKeepsRawBytes(t *testing.T) {
	raw := json.RawMessage("{ \"role\":\"assistant\",\n  \"content\":\"<b> & \u2028\", \"reasoning_content\": \"x\" }")
	in := Message{Role: Assistant, Text: "<b> & ", Calls: []ToolCall{{ID: "1", Name: "n", Args: "{"}}, Raw: raw}
	b, err := json.Marshal(map[string]any{"message": in})
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Message Message }
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(out.Message, in) {
		t.Errorf("message came back as %+v, want %+v", out.Message, in)
	}
}
