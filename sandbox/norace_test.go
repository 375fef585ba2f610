//go:build !race

package sandbox_test

// raced says that the race detector is on.
const raced = false
