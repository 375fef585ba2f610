// Package journal keeps what happened in a session: append-only events, one JSON object a
// line, in <workspace>/.skein/sessions/<id>/journal.jsonl.
//
// The events are the state: the terminal view, --json, reports and records are readers of
// them, and nothing else carries state between those. Each event has the sequence number of
// its own agent, so what one agent did reads the same whatever the others did meanwhile; how
// agents interleave in the file means nothing.
package journal

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Schema is the version of the event format; the first event of a file carries it.
const Schema = 1

// An Event is one thing that happened.
type Event struct {
	Schema  int             `json:"schema,omitempty"` // in the first event of a file only
	Session string          `json:"session"`
	Run     int             `json:"run"`
	Agent   string          `json:"agent"` // ordinal: "0" is the parent
	Seq     int             `json:"seq"`   // the agent's own, from 1
	Time    time.Time       `json:"time"`
	Kind    string          `json:"kind"`
	Data    json.RawMessage `json:"data"`
}

// A Payload is the content of an event: a pointer to one of the types of this package.
type Payload interface{ class() class }

// A class is a payload's name, stable across versions, and whether it must be on disk
// before an effect may follow it.
type class struct {
	kind    string
	durable bool
}

// Decode reads the event's content as its payload type, a pointer to it.
func (e Event) Decode() (Payload, error) {
	p := blank(e.Kind)
	if p == nil {
		return nil, fmt.Errorf("decode event %s: unknown kind", e.Kind)
	}
	if err := json.Unmarshal(e.Data, p); err != nil {
		return nil, fmt.Errorf("decode event %s: %w", e.Kind, err)
	}
	return p, nil
}

// blank returns a new payload of a kind, nil for a kind that there is not. The nil pointers say
// their kinds without being made: faces decode every event of a run.
func blank(kind string) Payload {
	for _, p := range []Payload{
		(*RunStarted)(nil), (*Notice)(nil), (*AgentQueued)(nil), (*AgentStarted)(nil), (*Message)(nil), (*Reply)(nil), (*Attempt)(nil),
		(*Call)(nil), (*Approval)(nil), (*Result)(nil), (*Checked)(nil), (*Snapshot)(nil), (*Copied)(nil), (*Collected)(nil), (*Resolved)(nil),
		(*Settled)(nil), (*AgentEnded)(nil), (*Fault)(nil), (*RunEnded)(nil),
	} {
		if p.class().kind == kind {
			return reflect.New(reflect.TypeOf(p).Elem()).Interface().(Payload)
		}
	}
	return nil
}
