package rawjson_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"skein/agent/model/wire/rawjson"
)

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string
		want   string
	}{
		{"texts go on", []string{`{"content":"a<"}`, `{"content":"b&\u00e9"}`}, `{"content":"a<b&\u00e9"}`},
		{"keys keep their place", []string{`{"b":null,"a":"1"}`, `{"b":"2","c":3}`}, `{"b":"2","a":"1","c":3}`},
		{"names stand once", []string{`{"role":"assistant","content":"aa"}`, `{"role":"assistant","content":"aa"}`}, `{"role":"assistant","content":"aaaa"}`},
		{"a pair of surrogates cut in two", []string{`{"x":"\ud83d"}`, `{"x":"\ude00"}`}, `{"x":"\ud83d\ude00"}`},
		{"objects", []string{`{"o":{"a":"x","n":1}}`, `{"o":{"a":"y","n":2.50}}`}, `{"o":{"a":"xy","n":2.50}}`},
		{"lists are joined", []string{`{"l":[1, {"a":2}]}`, `{"l":["x"]}`}, `{"l":[1,{"a":2},"x"]}`},
		{"elements by index", []string{`{"l":[{"index":1,"t":"b"},{"index":0,"t":"a"}]}`, `{"l":[{"index":1,"t":"B"}]}`}, `{"l":[{"index":1,"t":"bB"},{"index":0,"t":"a"}]}`},
		{"null replaces nothing", []string{`{"a":"x"}`, `{"a":null}`}, `{"a":"x"}`},
		{"empty list, empty text, empty object", []string{`{"l":[],"t":"","o":{}}`}, `{"l":[],"t":"","o":{}}`},
		{"another form replaces", []string{`{"a":"x"}`, `{"a":1}`, `{"a":[true]}`}, `{"a":[true]}`},
		{"nothing", nil, `{}`},
	} {
		var o rawjson.Object
		for _, p := range tc.pieces {
			if err := o.Merge(json.RawMessage(p)); err != nil {
				t.Fatalf("%s: Merge(%s) = %v", tc.name, p, err)
			}
		}
		if got := string(o.Bytes()); got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("%s: merged %q = %s, want %s", tc.name, tc.pieces, got, tc.want)
		}
		if again := string(o.Bytes()); again != tc.want {
			t.Errorf("%s: Bytes twice = %s, want %s", tc.name, again, tc.want)
		}
	}
}

func TestMergeRefusesWhatIsNoObject(t *testing.T) {
	for _, p := range []string{``, `"x"`, `1`, `{"a":`, `{"a" 1}`, `{"a":1`, `{"l":[1}`} {
		var o rawjson.Object
		if err := o.Merge(json.RawMessage(p)); err == nil {
			t.Errorf("Merge(%s) = nil, want an error", p)
		}
	}
}

// FuzzMerge states that a text cut into pieces anywhere comes out as if it had come whole,
// and that Edit without a change changes nothing.
func FuzzMerge(f *testing.F) {
	f.Add("hello <b> \u2028 \"quoted\" é", 3)
	f.Add("", 0)
	f.Add("\\ \n", 1)
	f.Fuzz(func(t *testing.T, s string, at int) {
		if !utf8.ValidString(s) || at < 0 || at > len(s) || !utf8.ValidString(s[:at]) {
			return
		}
		var cut, whole rawjson.Object
		for _, piece := range []string{s[:at], s[at:]} {
			raw, err := rawjson.Encode(map[string]string{"content": piece})
			if err != nil {
				t.Fatal(err)
			}
			if err := cut.Merge(raw); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := rawjson.Encode(map[string]string{"content": s})
		if err != nil {
			t.Fatal(err)
		}
		if err := whole.Merge(raw); err != nil {
			t.Fatal(err)
		}
		if got, want := cut.Bytes(), whole.Bytes(); !reflect.DeepEqual(got, want) || cut.Text("content") != s {
			t.Fatalf("cut at %d: %s with text %q, want %s with %q", at, got, cut.Text("content"), want, s)
		}
		same, err := rawjson.Edit(raw, func(_ string, v json.RawMessage) (json.RawMessage, error) { return v, nil })
		if err != nil || string(same) != string(raw) {
			t.Fatalf("Edit(%s) = %s, %v, want it unchanged", raw, same, err)
		}
	})
}
