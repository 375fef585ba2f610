package script

import (
	"crypto/sha256"
	"sync"
)

// block is the size in tokens that cache hits are multiples of.
const block = 64

// A prefix identifies a conversation's beginning by its content: the running hash of its
// pieces (the tools, then each message).
type prefix [sha256.Size]byte

func (p prefix) with(piece []byte) prefix {
	h := sha256.New()
	h.Write(p[:])
	h.Write(piece)
	return prefix(h.Sum(nil))
}

// ends returns the prefix after each piece.
func ends(pieces [][]byte) []prefix {
	return prefix{}.ends(pieces)
}

// ends returns the prefix after each piece that comes after p.
func (p prefix) ends(pieces [][]byte) []prefix {
	out := make([]prefix, 0, len(pieces))
	for _, piece := range pieces {
		p = p.with(piece)
		out = append(out, p)
	}
	return out
}

// tokens is how many tokens a piece has: a quarter of its bytes, rounded up.
func tokens(piece []byte) int64 { return int64(len(piece)+3) / 4 }

// total is how many tokens pieces have together.
func total(pieces [][]byte) (n int64) {
	for _, piece := range pieces {
		n += tokens(piece)
	}
	return n
}

// A cache simulates a provider's prefix cache. Each request leaves a unit that ends where
// its input ends and one that ends where its output ends; a request hits the longest unit
// that is a whole prefix of it, whoever left it. Units are never dropped: a script's run
// is short, and a unit is 40 bytes.
type cache struct {
	mu    sync.Mutex
	units map[prefix]int64 // where a unit ends: its size in tokens
}

// input returns how many tokens of the request were stored already, and stores its own
// unit. Without any piece it does neither.
func (c *cache) input(at []prefix, size int64) (hit int64) {
	if len(at) == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(at) - 1; i >= 0; i-- {
		if n, ok := c.units[at[i]]; ok {
			hit = min(n, size) / block * block
			break
		}
	}
	c.storeLocked(at[len(at)-1], size)
	return hit
}

// output stores the unit that ends with the reply.
func (c *cache) output(end prefix, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storeLocked(end, size)
}

// storeLocked keeps the larger size where scripts give the same content two sizes: which
// request came first must not matter.
func (c *cache) storeLocked(end prefix, size int64) {
	if c.units == nil {
		c.units = map[prefix]int64{}
	}
	c.units[end] = max(c.units[end], size)
}
