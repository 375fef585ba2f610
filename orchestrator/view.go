package orchestrator

import (
	"sync"

	"skein/sandbox"
)

// A sharedView is the handle on the files of one workspace that all who only read it use. To
// work out what they may not see takes milliseconds, and a thousand readers would each do so.
// It is opened for the first of them and closed when the last one leaves: who comes later has
// one that shows the workspace as it is then.
type sharedView struct {
	policy sandbox.Policy

	mu    sync.Mutex
	files *sandbox.Files // nil while nobody is here
	users int
}

// join gives a reader the files. Each must be closed.
func (s *sharedView) join() (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		files, err := sandbox.OpenFiles(s.policy)
		if err != nil {
			return nil, err
		}
		s.files = files
	}
	s.users++
	return &view{Files: s.files, leave: sync.OnceValue(s.leave)}, nil
}

func (s *sharedView) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	files := s.files
	s.files = nil
	return files.Close()
}

// A view is one reader's share of the files.
type view struct {
	*sandbox.Files
	leave func() error
}

// Close gives the share back. It may be called more than once.
func (v *view) Close() error { return v.leave() }
