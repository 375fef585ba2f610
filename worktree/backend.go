package worktree

import (
	"fmt"
	"path/filepath"
	"slices"
)

// The two ways to make a [Copy]; see [Options.Backend].
const (
	Auto    = "auto"
	Overlay = "overlay" // layers over a base that all copies share; a box shows them as one tree
	Fresh   = "fresh"   // a folder with all the files
)

// A BackendError tells that copies cannot be made in the way that was asked for.
type BackendError struct{ Backend, Why string }

func (e *BackendError) Error() string {
	return fmt.Sprintf("no %s copies here: %s", e.Backend, e.Why)
}

// Hint says what to do next.
func (e *BackendError) Hint() string { return "let skein choose: --worktree-backend auto" }

// Backend says how the next copies are made, and why not in a better way; "" where there
// is none, or where the user asked for this one. A snapshot may need another way: what
// was used for a copy is in [Copy.Backend]. It is known from the first snapshot on.
func (r *Repo) Backend() (name, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.backend, r.backendWhy
}

// checkBackend refuses names that are none.
func checkBackend(name string) error {
	if !slices.Contains([]string{"", Auto, Overlay, Fresh}, name) {
		return fmt.Errorf("copies by %q: there are auto, overlay and fresh", name)
	}
	return nil
}

// chooseLocked decides how copies are made. The cache is there.
func (r *Repo) chooseLocked(o Options) error {
	r.backend, r.backendWhy = Fresh, ""
	switch {
	case o.Backend == Fresh:
		return nil
	case !o.Overlay:
		r.backendWhy = "no box here shows layers"
	default:
		r.backend = Overlay
		if err := tryLayers(filepath.Join(r.cache, "bases")); err != nil {
			r.backend, r.backendWhy = Fresh, "the cache cannot hold layers: "+err.Error()
		}
	}
	if o.Backend == Overlay && r.backend != Overlay {
		return &BackendError{Overlay, r.backendWhy}
	}
	return nil
}
