//go:build !linux

package sandbox

// descendants finds nothing here: what left the process group of its command lives on.
func descendants(int) []int { return nil }
