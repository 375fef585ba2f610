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

// Whoever reads a stream piece by piece misses only what he is told was dropped.
func TestClipSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clip{limit: rapid.IntRange(1, 20).Draw(t, "limit")}
		var all []byte
		for _, w := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(t, "writes") {
			c.write(bytes.Clone(w))
			all = append(all, w...)
		}
		since := rapid.Int64Range(-3, int64(len(all))+3).Draw(t, "since")
		got, dropped, next := c.since(since)
		rest := all[max(0, min(since, int64(len(all)))):]
		if next != int64(len(all)) || int64(len(got))+dropped != int64(len(rest)) {
			t.Fatalf("since(%d) of %d bytes = %d bytes, %d dropped, next %d", since, len(all), len(got), dropped, next)
		}
		head := max(0, min(int64(len(c.head))-max(0, since), int64(len(got)))) // what lies before the gap
		if !bytes.Equal(got[:head], rest[:head]) || !bytes.Equal(got[head:], rest[head+dropped:]) {
			t.Errorf("since(%d) of %v = %v, %d dropped", since, all, got, dropped)
		}
	})
}
