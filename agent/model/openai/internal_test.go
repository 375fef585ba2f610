package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"skein/agent/model"
	"skein/agent/model/wire"
)

// FuzzWithIDs states that giving ids changes nothing but ids: what is decoded afterwards
// has the wanted ids, and is else what it was.
func FuzzWithIDs(f *testing.F) {
	for _, s := range []string{
		`{"tool_calls":[{},{"id":null},{"id":"a"} , { "x":[1,"]"],"id" : 7}]}`,
		`{"content":"\"tool_calls\":[{}]","tool_calls":[{"function":{"id":"inner"}}],"z":1.50}`,
		`{"tool_calls":[{}],"tool_calls":[{},{}]}`,
		`{"Tool_Calls":[{"ID":"x"}]}`,
		`{"tool_calls":[null]}`,
		`{"tool_calls":null}`,
		"{\"tool_calls\":[ {\n} ]}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in received
		if json.Unmarshal(data, &in) != nil || len(in.Calls) == 0 {
			return
		}
		ids := make([]string, len(in.Calls))
		for i := range ids {
			ids[i] = fmt.Sprint("call_", i)
		}
		out, err := withIDs(data, ids)
		if err != nil {
			return // refused: a message that reads in two ways
		}
		var back received
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("withIDs(%s) = %s: %v", data, out, err)
		}
		var names []string
		for _, c := range back.Calls {
			var id string
			if err := json.Unmarshal(c.ID, &id); err != nil {
				t.Fatalf("withIDs(%s) = %s: %v", data, out, err)
			}
			names = append(names, id)
		}
		if !slices.Equal(names, ids) {
			t.Fatalf("withIDs(%s) = %s with ids %q, want %q", data, out, names, ids)
		}
		if again, err := withIDs(out, ids); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("withIDs twice = %s, %v, want %s", again, err, out)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	c, err := New(Options{BaseURL: "http://127.0.0.1:1/v1", Model: "m"})
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(bytes.Repeat([]byte("x"), 4000))
	req := model.Request{Messages: slices.Repeat([]model.Message{{Raw: raw}}, 120)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Join(c.head, req.Messages, c.tail(req)); err != nil {
			b.Fatal(err)
		}
	}
}
