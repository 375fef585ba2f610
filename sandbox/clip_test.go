package sandbox

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// However a stream is cut into writes, its first and last bytes are kept, and no byte is
// unaccounted for.
func TestClipKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		writes := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(t, "writes")
		c := clip{limit: limit}
		for _, w := range writes {
			c.write(bytes.Clone(w))
		}
		all := bytes.Join(writes, nil)
		want := all
		if over := len(all) - limit; over > 0 {
			want = append(bytes.Clone(all[:limit/2]), all[limit/2+over:]...)
		}
		if got := c.bytes(); !bytes.Equal(got, want) || c.dropped != int64(len(all)-len(want)) {
			t.Errorf("clip(%v, limit %d) = %v, dropped %d, want %v, dropped %d", writes, limit, got, c.dropped, want, len(all)-len(want))
		}
	})
}
