package face

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode"

	"skein/agent/journal"
)

// JSON writes each event as one line of JSON, the same object that the journal holds.
type JSON struct {
	out io.Writer
	err error
}

// NewJSON returns a writer of events to out.
func NewJSON(out io.Writer) *JSON { return &JSON{out: out} }

// Watch writes an event; after a failure it writes no more.
func (j *JSON) Watch(e journal.Event) {
	if j.err != nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.out.Write(append(harmless(line), '\n'))
	}
	j.err = err
}

// Err is why events are missing, nil if none is. It is asked when the run is over.
func (j *JSON) Err() error { return j.err }

// harmless escapes what a terminal obeys and JSON leaves as it is: DEL and the C1 controls.
func harmless(line []byte) []byte {
	var safe []byte
	for _, r := range string(line) {
		if r >= 0x80 && unicode.IsControl(r) || r == 0x7f {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = append(safe, string(r)...)
		}
	}
	return safe
}
