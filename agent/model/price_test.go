package model

import "testing"

func TestCost(t *testing.T) {
	p := &Price{Input: 2, CacheRead: 0.5, CacheWrite: 2.5, Output: 10}
	all := Usage{Input: Tokens(1_000_000), CacheRead: Tokens(2_000_000), CacheWrite: Tokens(400_000), Output: Tokens(100_000)}
	for _, tt := range []struct {
		name  string
		price *Price
		usage Usage
		want  float64
		known bool
	}{
		{"all counters", p, all, 2 + 1 + 1 + 1, true},
		{"no price", nil, all, 0, false},
		{"no cache writes", p, Usage{Input: Tokens(500_000), CacheRead: Tokens(0), Output: Tokens(0)}, 1, true},
		{"cache not measured", p, Usage{Input: Tokens(1), Output: Tokens(1)}, 0, false},
		{"cache not measured, one price", &Price{Input: 1, CacheRead: 1, Output: 1}, Usage{Input: Tokens(1_000_000), Output: Tokens(0)}, 1, true},
		{"nothing measured", p, Usage{}, 0, false},
	} {
		if got, known := tt.price.Cost(tt.usage); got != tt.want || known != tt.known {
			t.Errorf("%s: Cost = %v, %v, want %v, %v", tt.name, got, known, tt.want, tt.known)
		}
	}
}

func TestMostIsNeverLessThanTheCost(t *testing.T) {
	p := &Price{Input: 2, CacheRead: 0.5, CacheWrite: 2.5, Output: 10}
	for _, tt := range []struct {
		usage Usage
		want  float64
		known bool
	}{
		{Usage{Input: Tokens(1_000_000), CacheRead: Tokens(0), CacheWrite: Tokens(0), Output: Tokens(100_000)}, 3, true},
		{Usage{Input: Tokens(1_000_000), CacheRead: Tokens(0), Output: Tokens(0)}, 2.5, true}, // writes may be among the input
		{Usage{Input: Tokens(1_000_000), Output: Tokens(100_000)}, 3.5, true},
		{Usage{Input: Tokens(1)}, 0, false},
		{Usage{}, 0, false},
	} {
		if got, known := p.Most(tt.usage); got != tt.want || known != tt.known {
			t.Errorf("Most(%+v) = %v, %v, want %v, %v", tt.usage, got, known, tt.want, tt.known)
		}
	}
	if _, known := (*Price)(nil).Most(NoUsage()); known {
		t.Error("known without a price")
	}
}

func TestDollars(t *testing.T) {
	for usd, want := range map[float64]string{0: "$0.00", 12: "$12.00", 0.5: "$0.50", 0.05: "$0.050", 0.00123: "$0.0012", 1e-12: "$0.00000000"} {
		if got := Dollars(usd); got != want {
			t.Errorf("Dollars(%v) = %s, want %s", usd, got, want)
		}
	}
}
