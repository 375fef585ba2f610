package script

import (
	"strings"
	"testing"
	"testing/synctest"
)

// conversation makes pieces of 4n bytes each, which are n tokens.
func conversation(sizes ...int) [][]byte {
	var out [][]byte
	for i, n := range sizes {
		out = append(out, []byte(strings.Repeat(string(rune('a'+i)), 4*n)))
	}
	return out
}

func TestCacheHits(t *testing.T) {
	c := cache{}
	ask := func(pieces [][]byte, reply string, size, output int64) int64 {
		at := ends(pieces)
		hit := c.input(at, size)
		c.output(at[len(at)-1].with([]byte(reply)), size+output)
		return hit
	}
	front := conversation(100, 200)
	longer := append(conversation(100, 200), []byte("reply"), []byte(strings.Repeat("r", 400)))
	sibling := append(conversation(100, 200), []byte("another task"))
	changed := conversation(100, 200)
	changed[0] = append([]byte{'x'}, changed[0][1:]...)
	for _, tc := range []struct {
		name         string
		pieces       [][]byte
		size, output int64
		want         int64
	}{
		{"nothing stored", front, 462, 186, 0},
		{"input and output of the last request", longer, 4409, 6, 640},
		{"the same again", longer, 4409, 6, 4352},
		{"shares the input only", sibling, 500, 1, 448},
		{"no unit ends within the front", conversation(100), 100, 1, 0},
		{"one byte changed", changed, 462, 1, 0},
		{"tools missing", append([][]byte{nil}, front[1:]...), 462, 1, 0},
		{"never more than the input", longer, 100, 1, 64},
		{"the larger of two sizes stays", longer, 4409, 6, 4352},
	} {
		if got := ask(tc.pieces, "reply", tc.size, tc.output); got != tc.want {
			t.Errorf("%s: hit = %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestPrefixKnowsWherePiecesEnd guards against units found by content cut at another place.
func TestPrefixKnowsWherePiecesEnd(t *testing.T) {
	a := ends([][]byte{[]byte("ab"), []byte("c")})
	b := ends([][]byte{[]byte("a"), []byte("bc")})
	if a[1] == b[1] {
		t.Error("ends of ab,c and a,bc are equal, want them different")
	}
}

func TestTokens(t *testing.T) {
	for _, tc := range []struct {
		bytes int
		want  int64
	}{{0, 0}, {1, 1}, {4, 1}, {5, 2}, {256, 64}} {
		if got := tokens(make([]byte, tc.bytes)); got != tc.want {
			t.Errorf("tokens(%d bytes) = %d, want %d", tc.bytes, got, tc.want)
		}
	}
}

func TestRecordDropsOldestBodies(t *testing.T) {
	s := &Server{}
	for range 5 {
		s.record(Recorded{Agent: "0", Body: make([]byte, recordLimit/4)})
	}
	got := s.Requests()
	if len(got) != 5 || got[0].Body != nil || got[1].Body == nil || got[4].Body == nil {
		t.Errorf("of %d requests the first body is kept: %v, the last: %v, want false, true", len(got), got[0].Body != nil, got[4].Body != nil)
	}
}

func TestCloseWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{stop: func() error { return nil }, served: make(chan struct{})}
		close(s.served)
		if !s.enter() {
			t.Fatal("enter before Close = false, want true")
		}
		closed := false
		go func() { // the bubble waits for it
			_ = s.Close()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("Close returned while a handler was busy")
		}
		if s.enter() {
			t.Error("enter after Close = true, want false")
		}
		s.busy.Done()
		synctest.Wait()
		if !closed {
			t.Error("Close still waits after the last handler ended")
		}
	})
}
