package journal

import (
	"crypto/rand"
	"encoding/base32"
	"time"
)

// NewID returns an id for a session: sortable by the time it was made, to the second, and
// unlikely to be made twice.
func NewID(now time.Time) string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand.Read ends the program instead
	return now.UTC().Format("20060102-150405-") + base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").EncodeToString(b[:])
}
