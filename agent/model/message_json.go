package model

import "encoding/json"

// stored is a message as journals keep it. The raw form is a JSON string there: inside an
// object, encoders would compact and escape it, and its bytes are what must be sent again.
type stored struct {
	plain
	Raw string `json:"raw,omitempty"`
}

type plain Message

// MarshalJSON keeps the raw form byte for byte.
func (m Message) MarshalJSON() ([]byte, error) {
	s := stored{plain: plain(m), Raw: string(m.Raw)}
	s.plain.Raw = nil
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *Message) UnmarshalJSON(b []byte) error {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*m = Message(s.plain)
	m.Raw = nil
	if s.Raw != "" {
		m.Raw = json.RawMessage(s.Raw)
	}
	return nil
}
