package model

import "fmt"

// A Price is what a model costs, in US dollars for a million tokens of each counter.
type Price struct {
	Input      float64 `yaml:"input"`
	CacheRead  float64 `yaml:"cache_read"`
	CacheWrite float64 `yaml:"cache_write"`
	Output     float64 `yaml:"output"`
}

// Cost is what a usage costs. It is unknown (false) without a price, or where a counter that
// has a price of its own was not measured: part of the input may then have been cheaper. A
// provider without writes to its cache leaves that counter out, which costs nothing.
func (p *Price) Cost(u Usage) (usd float64, known bool) {
	if p == nil || !u.Input.Known || !u.Output.Known || !u.CacheRead.Known && p.CacheRead != p.Input {
		return 0, false
	}
	sum := float64(u.Input.N)*p.Input + float64(u.CacheRead.N)*p.CacheRead + float64(u.CacheWrite.N)*p.CacheWrite + float64(u.Output.N)*p.Output
	return sum / 1e6, true
}

// Most is what a usage costs at most: input of which it is not known whether a cache had it
// is taken at the highest price of input. It is unknown only without a price, or where input
// or output were not measured. Limits count by it.
func (p *Price) Most(u Usage) (usd float64, known bool) {
	if p == nil || !u.Input.Known || !u.Output.Known {
		return 0, false
	}
	input := p.Input
	if !u.CacheRead.Known || !u.CacheWrite.Known {
		input = max(p.Input, p.CacheRead)
		if !u.CacheWrite.Known {
			input = max(input, p.CacheWrite)
		}
	}
	sum := float64(u.Input.N)*input + float64(u.CacheRead.N)*p.CacheRead + float64(u.CacheWrite.N)*p.CacheWrite + float64(u.Output.N)*p.Output
	return sum / 1e6, true
}

// Dollars shows an amount to the cent, and a small one to its second digit that says something.
func Dollars(usd float64) string {
	digits := 2
	for v := usd * 10; v > 0 && v < 1 && digits < 8; v *= 10 {
		digits++
	}
	return fmt.Sprintf("$%.*f", digits, usd)
}
