package orchestrator

import (
	"io"
	"sync"
)

// A shared is what all who only read one workspace have together. It is opened for the first of
// them and closed when the last one leaves: who comes later has one that shows the workspace as
// it is then.
type shared[T io.Closer] struct {
	open func() (T, error)

	mu    sync.Mutex
	held  T // while there are users
	users int
}

// join gives a user his share. Leave gives it back; it may be called more than once.
func (s *shared[T]) join() (held T, leave func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		if s.held, err = s.open(); err != nil {
			return held, nil, err
		}
	}
	s.users++
	return s.held, sync.OnceValue(s.leave), nil
}

func (s *shared[T]) leave() error {
	s.mu.Lock()
	var none T
	held, last := s.held, s.users == 1
	if s.users--; last {
		s.held = none
	}
	s.mu.Unlock() // to close it can take long, and who comes next has another
	if !last {
		return nil
	}
	return held.Close()
}
