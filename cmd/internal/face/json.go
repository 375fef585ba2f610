package face

import (
	"encoding/json"
	"io"

	"skein/agent/journal"
)

// JSON returns a watcher that writes each event to out as one line of JSON, the same object
// that the journal holds. What cannot be written is dropped: the journal has it.
func JSON(out io.Writer) func(journal.Event) {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return func(e journal.Event) { _ = enc.Encode(e) }
}
