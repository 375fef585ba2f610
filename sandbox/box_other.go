//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"runtime"
)

// A Box holds the processes of one workspace. This system has none yet.
type Box struct{}

// Open answers [ErrNoBox].
func Open(_ context.Context, p Policy) (*Box, error) {
	if _, err := p.checked(); err != nil {
		return nil, err
	}
	return nil, &noBox{errors.New("not implemented for " + runtime.GOOS)}
}

// Run is never reached.
func (b *Box) Run(context.Context, Command) (Output, error) { return Output{}, ErrNoBox }

// Start is never reached.
func (b *Box) Start(context.Context, Command) (*Process, error) { return nil, ErrNoBox }

// Root is never reached.
func (b *Box) Root() string { return "" }

// Files is never reached.
func (b *Box) Files() (*Files, error) { return nil, ErrNoBox }

// FilesBelow is never reached.
func (b *Box) FilesBelow(string, bool) (*Files, error) { return nil, ErrNoBox }

// Held tells of nothing.
func (b *Box) Held() Held { return Held{} }

// Planted lists nothing.
func (b *Box) Planted() []string { return nil }

// Close does nothing.
func (b *Box) Close() error { return nil }

// Examine answers [ErrNoBox].
func Examine(context.Context) (r Report, err error) {
	return r.broken("a box", &noBox{errors.New("not implemented for " + runtime.GOOS)})
}

// ExamineLayers answers [ErrNoBox].
func ExamineLayers(context.Context) error {
	return &noBox{errors.New("not implemented for " + runtime.GOOS)}
}

// ExamineNet answers [ErrNoBox].
func ExamineNet(context.Context) error {
	return &noBox{errors.New("not implemented for " + runtime.GOOS)}
}

func answer(err error) string { return err.Error() }

// A Guest is one of several users of a box. This system has none yet.
type Guest struct{}

// Guest is never reached.
func (b *Box) Guest(string) (*Guest, error) { return nil, ErrNoBox }

// Run is never reached.
func (g *Guest) Run(context.Context, Command) (Output, error) { return Output{}, ErrNoBox }

// Start is never reached.
func (g *Guest) Start(context.Context, Command) (*Process, error) { return nil, ErrNoBox }

// Close does nothing.
func (g *Guest) Close() error { return nil }
