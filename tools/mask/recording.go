package mask

import (
	"bytes"
	"strings"
)

// keyMark stands in recordings for a key of several lines, or with escapes.
const keyMark = "[key masked]"

// Recording returns a mask for recordings that are played again. What is masked for its looks
// alone, such as a key that the model made up for a test, is not marked as a secret there: the
// model wrote it, and in the replay it has to pass as text of a file. Its stand-in is as long,
// so that the sizes that tools tell are those of the run.
func (m *Mask) Recording() *Mask {
	shaped := *m
	shaped.shaped = true
	return &shaped
}

// mark is what stands for a secret. How often it was escaped must not matter: a recording holds
// the same text in JSON of several depths.
func (m *Mask) mark(secret []byte, looks bool) string {
	switch {
	case !m.shaped || !looks:
		return Marker
	case bytes.ContainsAny(secret, "\\%\r\n"):
		return keyMark
	}
	return "[" + strings.Repeat("*", len(secret)-2) + "]"
}

// isMark reports whether a secret could be found in a mark, so that masking twice would differ.
func isMark(secret string) bool {
	return strings.Contains(Marker, secret) || strings.Contains(keyMark, secret) || strings.Trim(secret, "[*]") == ""
}
