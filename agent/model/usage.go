package model

import (
	"encoding/json"
	"strconv"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A Count is a number of tokens that may be unknown. Unknown is not zero: a sum with an
// unknown part is unknown. The zero value is unknown; JSON shows it as null.
type Count struct {
	N     int64
	Known bool
}

// mostTokens is what no call and no run can reach: a figure beyond it is not true.
const mostTokens = 1 << 40

// Tokens returns a known count. A number that cannot be true, as a broken server may send
// it, gives an unknown one.
func Tokens(n int64) Count {
	if n < 0 || n > mostTokens {
		return Count{}
	}
	return Count{N: n, Known: true}
}

// Plus returns the sum, unknown if either part is.
func (c Count) Plus(d Count) Count {
	if !c.Known || !d.Known {
		return Count{}
	}
	return Tokens(c.N + d.N)
}

// Max returns the larger count, unknown if either is.
func (c Count) Max(d Count) Count {
	if !c.Known || !d.Known {
		return Count{}
	}
	return Tokens(max(c.N, d.N))
}

// String shows the number, or "unavailable".
func (c Count) String() string {
	if !c.Known {
		return "unavailable"
	}
	return strconv.FormatInt(c.N, 10)
}

// MarshalJSON shows an unknown count as null.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, c.N, 10), nil
}

// UnmarshalJSON reads a number or null.
func (c *Count) UnmarshalJSON(b []byte) error {
	var n *int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*c = Count{}
	if n != nil {
		*c = Tokens(*n)
	}
	return nil
}

// Usage is what exchanges cost, in four disjoint counters; Reasoning is a part of Output.
// Where it is unknown what a cache did, its part is in Input: the whole prompt stays known.
type Usage struct {
	Input      Count `json:"input"` // not known to be read from or written to a cache
	CacheRead  Count `json:"cache_read"`
	CacheWrite Count `json:"cache_write"`
	Output     Count `json:"output"`
	Reasoning  Count `json:"reasoning"`
}

// NoUsage is the sum of no exchange at all: every counter known and zero.
func NoUsage() Usage {
	z := Tokens(0)
	return Usage{Input: z, CacheRead: z, CacheWrite: z, Output: z, Reasoning: z}
}

// Plus returns the sum of both, counter by counter. A cache counter that becomes unknown
// gives the part that was known back to Input, so Prompt of the sum is the sum of Prompts.
func (u Usage) Plus(v Usage) Usage {
	s := Usage{
		Input:      u.Input.Plus(v.Input),
		CacheRead:  u.CacheRead.Plus(v.CacheRead),
		CacheWrite: u.CacheWrite.Plus(v.CacheWrite),
		Output:     u.Output.Plus(v.Output),
		Reasoning:  u.Reasoning.Plus(v.Reasoning),
	}
	if s.Input.Known && !s.CacheRead.Known {
		s.Input.N += u.CacheRead.N + v.CacheRead.N // an unknown count holds zero
	}
	if s.Input.Known && !s.CacheWrite.Known {
		s.Input.N += u.CacheWrite.N + v.CacheWrite.N
	}
	return s
}

// Prompt is the size of the whole input: uncached, read from and written to a cache.
func (u Usage) Prompt() Count {
	if !u.Input.Known {
		return Count{}
	}
	return Tokens(u.Input.N + u.CacheRead.N + u.CacheWrite.N)
}
