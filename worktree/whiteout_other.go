//go:build !linux

package worktree

import (
	"errors"
	"io/fs"
)

// Layers are Linux's.

func whiteout(string) error         { return errors.ErrUnsupported }
func isWhiteout(fs.FileInfo) bool   { return false }
func isOpaque(string) (bool, error) { return false, nil }
func tryLayers(string) error        { return errors.ErrUnsupported }
func seal(string) error             { return errors.ErrUnsupported }
func sealed(string) bool            { return false }
