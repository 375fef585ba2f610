//go:build !linux

// Package sandboxtest is for tests with boxes: it gives them a small init, and a system that lacks what
// boxes are made of.
package sandboxtest

// WithoutLandlock does nothing: there is none.
func WithoutLandlock() error { return nil }
