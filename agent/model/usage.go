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

// Tokens returns a known count.
func Tokens(n int64) Count { return Count{N: n, Known: true} }

// Plus returns the sum, unknown if either part is.
func (c Count) Plus(d Count) Count {
	if !c.Known || !d.Known {
		return Count{}
	}
	return Tokens(c.N + d.N)
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
type Usage struct {
	Input      Count `json:"input"` // not read from a cache
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

// Plus returns the sum of both, counter by counter.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input:      u.Input.Plus(v.Input),
		CacheRead:  u.CacheRead.Plus(v.CacheRead),
		CacheWrite: u.CacheWrite.Plus(v.CacheWrite),
		Output:     u.Output.Plus(v.Output),
		Reasoning:  u.Reasoning.Plus(v.Reasoning),
	}
}

// Prompt is the size of the whole input: uncached, read from and written to a cache.
// A provider without a cache leaves CacheWrite unknown, which then does not count.
func (u Usage) Prompt() Count {
	sum := u.Input.Plus(u.CacheRead)
	if u.CacheWrite.Known {
		sum = sum.Plus(u.CacheWrite)
	}
	return sum
}
