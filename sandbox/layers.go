package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Layers are folders of the host that a box shows as one, over [Policy.Workspace]. None of
// them may be changed by anybody else while a box shows it. A git directory is shown at the
// empty folder .git of one of them.
type Layers struct {
	// Above are read-only, the topmost first.
	Above []string
	// Upper takes what is changed; "" keeps that in memory, until the box ends. It belongs
	// to the user of the workspace. A box that is not writable shows it as the topmost.
	Upper string
	// Work is a folder beside Upper that the kernel needs: empty at first, and its own.
	Work string
}

// mostLayers keeps the list of layers within what the kernel reads of it.
const mostLayers = 16

// checked returns the layers with their paths absolute and free of symbolic links.
func (l Layers) checked() (*Layers, error) {
	fault := func(err error) (*Layers, error) {
		return nil, &policyError{fmt.Errorf("layers: %w", err), "this is a fault of the program that opens the box"}
	}
	if len(l.Above) > mostLayers {
		return fault(fmt.Errorf("%d of them, at most %d can be", len(l.Above), mostLayers))
	}
	above := make([]string, len(l.Above))
	for i, path := range l.Above {
		var err error
		if above[i], err = resolve(path); err != nil {
			return fault(err)
		}
	}
	l.Above = above
	if l.Upper == "" && l.Work == "" {
		return &l, nil
	}
	for _, path := range []*string{&l.Upper, &l.Work} {
		var err error
		if *path == "" {
			return fault(errors.New("what takes the changes and what the kernel needs go together"))
		}
		if *path, err = resolve(*path); err != nil {
			return fault(err)
		}
	}
	if l.Upper == l.Work || filepath.Dir(l.Upper) != filepath.Dir(l.Work) {
		return fault(errors.New("what takes the changes and what the kernel needs must be two folders in one folder"))
	}
	return &l, nil
}
