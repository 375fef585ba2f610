package model

import (
	"encoding/json"
	"fmt"
	"slices"
)

// An Encoder turns the harness's own messages into a provider's dialect; every [Client] is one.
type Encoder interface {
	Encode(m Message) (json.RawMessage, error)
	Dialect() string
}

// A Transcript is one agent's conversation. It only grows at its end, and each message is
// encoded once, when it is appended. It belongs to one goroutine; what Messages returned
// stays valid and may be read by others.
type Transcript struct {
	enc      Encoder
	messages []Message
}

// NewTranscript starts a conversation with messages that another transcript of the same
// dialect holds already: nothing is encoded again.
func NewTranscript(enc Encoder, front ...Message) *Transcript {
	return &Transcript{enc: enc, messages: slices.Clip(front)}
}

// Translate continues a conversation with another client. Messages whose raw form is of
// another dialect are made anew from the neutral view; translated tells how many. What only
// the raw form held (reasoning, signatures) is lost for those, and so is the cached front.
func (t *Transcript) Translate(enc Encoder) (to *Transcript, translated int, err error) {
	to = &Transcript{enc: enc}
	for _, m := range t.messages {
		if m.Dialect != enc.Dialect() {
			m.Raw, translated = nil, translated+1
		}
		if err := to.Append(m); err != nil {
			return nil, 0, err
		}
	}
	return to, translated, nil
}

// Append adds a message and encodes it unless it has its raw form already.
func (t *Transcript) Append(m Message) error {
	if m.Raw == nil {
		raw, err := t.enc.Encode(m)
		if err != nil {
			return fmt.Errorf("encode %s message: %w", m.Role, err)
		}
		m.Raw = raw
	}
	m.Dialect = t.enc.Dialect()
	t.messages = append(t.messages, m)
	return nil
}

// Messages returns the conversation so far. The caller must not change it.
func (t *Transcript) Messages() []Message { return slices.Clip(t.messages) }
