package boxinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	want := Request{ID: 7, Argv: []string{"a", "", "<&>\u2028", "\xff\xfe", "\x00", "\x00AAAA", "\ufffd"}, Dir: "/d", Env: []string{"A=\x80"}}
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
func TestOtherVersionsAreRefused(t *testing.T) {
	type (
		held struct{ Landlock, Processes int }
		one  struct {
			ID    int64
			Names []string
			Held  *held
		}
		same struct {
			ID    int64
			Names []string
			Held  *held
		}
		more struct {
			ID       int64
			Names    []string
			Held     *held
			Stricter bool
		}
		named struct {
			ID     int64
			Others []string
			Held   *held
		}
		kind struct {
			ID    int64
			Names []string
			Held  *struct{ Landlock, Processes int64 }
		}
	)
	frame, err := Encode(one{1, []string{"x"}, &held{2, -3}})
	if err != nil {
		t.Fatal(err)
	}
	var got same
	if err := Decode(bytes.NewReader(frame), &got); err != nil || got.ID != 1 || got.Names[0] != "x" || *got.Held != (held{2, -3}) {
		t.Errorf("Decode as the same = %+v, %v", got, err)
	}
	for _, v := range []any{&more{}, &named{}, &kind{}} {
		if err := Decode(bytes.NewReader(frame), v); !errors.Is(err, errVersion) {
			t.Errorf("Decode as %T = %v, want errVersion", v, err)
		}
	}
}

// What is cut off, or goes on, is no message.
func TestBrokenMessagesAreRefused(t *testing.T) {
	frame, err := Encode(Request{ID: -7, Argv: []string{"a", "b"}, Dir: "/d", Kill: true})
	if err != nil {
		t.Fatal(err)
	}
	body := string(frame[HeaderLen:])
	if err := decode(body, reflect.ValueOf(&Request{}).Elem()); err != nil {
		t.Errorf("control: decode = %v", err)
	}
	for n := range len(body) {
		if err := decode(body[:n], reflect.ValueOf(&Request{}).Elem()); err == nil {
			t.Errorf("decode of the first %d bytes of %d = nil, want an error", n, len(body))
		}
	}
	if err := decode(body+"\x00", reflect.ValueOf(&Request{}).Elem()); err == nil {
		t.Error("decode of a byte more = nil, want an error")
	}
}

func TestLongMessagesAreRefused(t *testing.T) {
	if _, err := Encode(struct{ Text string }{strings.Repeat("x", MaxFrame)}); err == nil {
		t.Error("Encode of more than MaxFrame bytes = nil, want an error")
	}
	header := binary.BigEndian.AppendUint32(nil, MaxFrame+1)
	if err := Decode(bytes.NewReader(header), &Request{}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("Decode of a long message = %v, want an error that says so", err)
	}
}

func FuzzDecode(f *testing.F) {
	frame, err := Encode(Request{ID: 1, Argv: []string{"x"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add([]byte{0, 0, 0, 2, 1, 2})
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
