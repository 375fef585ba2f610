package model

import (
	"encoding/json"
	"testing"
)

// plainly encodes a message as its dialect and text.
type plainly string

func (p plainly) Encode(m Message) (json.RawMessage, error) {
	return json.Marshal(string(p) + ":" + m.Text)
}
func (p plainly) Dialect() string { return string(p) }

func TestTranslateMakesRawFormsAnewOnce(t *testing.T) {
	a := NewTranscript(plainly("a"))
	for _, m := range []Message{{Role: User, Text: "u"}, {Role: Assistant, Text: "r", Raw: json.RawMessage(`"as received"`)}} {
		if err := a.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	same, n, err := a.Translate(plainly("a"))
	if err != nil || n != 0 || string(same.Messages()[1].Raw) != `"as received"` {
		t.Errorf("Translate to the same dialect = %d translated, %v, %v", n, same.Messages(), err)
	}
	other, n, err := a.Translate(plainly("b"))
	if err != nil || n != 2 {
		t.Fatalf("Translate = %d translated, %v, want 2", n, err)
	}
	for i, want := range []string{`"b:u"`, `"b:r"`} {
		if got := other.Messages()[i]; string(got.Raw) != want || got.Dialect != "b" {
			t.Errorf("message %d = %s of %s, want %s of b", i, got.Raw, got.Dialect, want)
		}
	}
	if string(a.Messages()[1].Raw) != `"as received"` {
		t.Error("the first transcript changed")
	}
}
