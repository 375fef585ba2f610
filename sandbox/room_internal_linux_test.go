package sandbox

import "testing"

// What a box may write in memory is bounded by the machine's, whatever its limit says.
func TestRoomIsTheMachines(t *testing.T) {
	const gib = 1 << 30
	none := roomIn(0, 8*gib)
	for _, row := range []struct {
		memory, machine int64
		want            room
	}{
		{2 * gib, 8 * gib, room{"536870912", "1073741824"}},
		{8 * gib, 8 * gib, room{"1073741824", "4294967296"}},
		{2 * gib, 0, room{"536870912", "1073741824"}},
		{9 * gib, 8 * gib, none},
		{1 << 60, 8 * gib, none},
	} {
		if got := roomIn(row.memory, row.machine); got != row.want {
			t.Errorf("roomIn(%d, %d) = %v, want %v", row.memory, row.machine, got, row.want)
		}
	}
}
