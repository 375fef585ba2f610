//go:build !linux

// Package sandboxtest makes a system lack what boxes are made of, for tests of how that is met.
package sandboxtest

// WithoutLandlock does nothing: there is none.
func WithoutLandlock() error { return nil }
