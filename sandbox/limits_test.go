package sandbox

import "testing"

// Boxes that share the machine have no more of it together than one has, while each has enough.
func TestMemoryIsShared(t *testing.T) {
	const gib = 1 << 30
	for _, row := range []struct {
		limits        Limits
		machine, want int64
	}{
		{Limits{}, 64 * gib, 32 * gib},
		{Limits{Share: 1}, 64 * gib, 32 * gib},
		{Limits{Share: 8}, 64 * gib, 4 * gib},
		{Limits{Share: 8}, 16 * gib, 2 * gib},
		{Limits{Share: 8}, 2 * gib, gib},
		{Limits{Share: 8, Memory: gib}, 64 * gib, gib},
		{Limits{Share: 8, Memory: -1}, 64 * gib, 0},
	} {
		if got := row.limits.settled(row.machine).Memory; got != row.want {
			t.Errorf("memory of %+v on a machine with %d = %d, want %d", row.limits, row.machine, got, row.want)
		}
	}
}
