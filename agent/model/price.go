package model

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
