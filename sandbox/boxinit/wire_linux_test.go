package boxinit

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	want := Request{ID: 7, Argv: []Raw{"a", "", "<&>\u2028", "\xff\xfe"}, Dir: "/d", Env: []Raw{"A=\x80"}}
	frame, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Request
	r := bytes.NewReader(append(frame, "next"...))
	if err := Decode(r, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode(Encode(%+v)) = %+v, %v", want, got, err)
	}
	if r.Len() != len("next") {
		t.Errorf("Decode left %d bytes, want the %d of the next message", r.Len(), len("next"))
	}
}

// An init that ignored a part of the policy would build a box that holds less.
func TestUnknownPartsAreRefused(t *testing.T) {
	frame, err := Encode(map[string]any{"Mounts": nil, "Stricter": true})
	if err != nil {
		t.Fatal(err)
	}
	if err := Decode(bytes.NewReader(frame), &Spec{}); err == nil || !strings.Contains(err.Error(), "Stricter") {
		t.Errorf("Decode = %v, want an error that names the unknown field", err)
	}
}

func TestLongMessagesAreRefused(t *testing.T) {
	if _, err := Encode(strings.Repeat("x", MaxFrame)); err == nil {
		t.Error("Encode of more than MaxFrame bytes = nil, want an error")
	}
	header := binary.BigEndian.AppendUint32(nil, MaxFrame+1)
	if err := Decode(bytes.NewReader(header), new(string)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("Decode of a long message = %v, want an error that says so", err)
	}
}

func FuzzDecode(f *testing.F) {
	frame, err := Encode(Request{ID: 1, Argv: []Raw{"x"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second Request
		if Decode(bytes.NewReader(data), &first) != nil {
			return
		}
		again, err := Encode(first) // what was understood can be said again
		if err != nil {
			t.Fatal(err)
		}
		if err := Decode(bytes.NewReader(again), &second); err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("Decode(Encode(%+v)) = %+v, %v", first, second, err)
		}
	})
}
