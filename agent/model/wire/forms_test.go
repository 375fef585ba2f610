package wire_test

import (
	"encoding/json"
	"io"
	"testing"

	"skein/agent/model"
	"skein/agent/model/wire"
)

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		cut  bool
		want string
	}{
		{`"{\"a\": 1}"`, false, `{"a": 1}`},
		{`{"a": 1}`, false, `{"a": 1}`},
		{``, false, "{}"},
		{`null`, false, "{}"},
		{`""`, false, ""},
		{``, true, ""},
		{`null`, true, ""},
		{`"{\"a"`, true, `{"a`},
	} {
		if got := wire.Arguments(json.RawMessage(tc.raw), tc.cut); got != tc.want {
			t.Errorf("Arguments(%s, %t) = %q, want %q", tc.raw, tc.cut, got, tc.want)
		}
	}
}

// The work grows with the number of calls: thousands with one id are as many steps.
func BenchmarkCallIDs(b *testing.B) {
	same := make([]string, 6000)
	for i := range same {
		same[i] = "a"
	}
	for b.Loop() {
		if ids, _ := wire.CallIDs(same, nil); len(ids) != len(same) {
			b.Fatal("ids are missing")
		}
	}
}

func TestObject(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{`{"b": 1.0}`, `{"b": 1.0}`},
		{`{"b": `, `{"arguments":"{\"b\": "}`},
		{`[1]`, `{"arguments":"[1]"}`},
		{``, `{"arguments":""}`},
	} {
		if got, err := wire.Object(tc.args); err != nil || string(got) != tc.want {
			t.Errorf("Object(%s) = %s, %v, want %s", tc.args, got, err, tc.want)
		}
	}
}

func TestSchemaOfATool(t *testing.T) {
	for raw, want := range map[string]string{" {} ": "{}", "": "", "true": "", "[]": ""} {
		got, err := wire.Schema(model.Tool{Name: "f", Schema: json.RawMessage(raw)})
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("Schema(%q) = %s, %v, want %q", raw, got, err, want)
		}
	}
}

func TestJoin(t *testing.T) {
	message := func(raw string) model.Message { return model.Message{Raw: json.RawMessage(raw)} }
	b, err := wire.Join([]byte("["), []model.Message{message("1"), message("2"), message("3")}, []byte("]"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b.Reader()); err != nil || string(got) != "[1,2,3]" || b.Size() != int64(len(got)) {
		t.Errorf("Join = %s of size %d, %v, want [1,2,3]", got, b.Size(), err)
	}
	for _, messages := range [][]model.Message{nil, {message("1"), message("")}} {
		if _, err := wire.Join(nil, messages, nil); err == nil {
			t.Errorf("Join of %v = nil, want an error", messages)
		}
	}
}
