package face_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/cmd/internal/face"
)

func TestJSONHoldsNothingATerminalObeys(t *testing.T) {
	var out strings.Builder
	j := face.NewJSON(&out)
	data, err := json.Marshal("a\u009b31m\x7f\x1b[0m <b> é")
	if err != nil {
		t.Fatal(err)
	}
	j.Watch(journal.Event{Kind: "notice", Data: data})
	if strings.ContainsAny(out.String(), "\u009b\x7f\x1b") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("line = %q", out.String())
	}
	var e journal.Event
	if err := json.Unmarshal([]byte(out.String()), &e); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(e.Data, &got); err != nil || got != "a\u009b31m\x7f\x1b[0m <b> é" {
		t.Errorf("text came back as %q, %v", got, err)
	}
	if err := j.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) {
	b.writes++
	return 0, errors.New("full")
}

func TestJSONTellsOfMissingEvents(t *testing.T) {
	b := &broken{}
	j := face.NewJSON(b)
	j.Watch(journal.Event{})
	j.Watch(journal.Event{})
	if j.Err() == nil || b.writes != 1 {
		t.Errorf("Err = %v after %d writes, want an error after one", j.Err(), b.writes)
	}
}
