package worktree

import (
	"context"
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
func (r *Repo) chooseLocked(ctx context.Context, o Options) error {
	if o.Backend == Fresh {
		r.backend, r.backendWhy = Fresh, ""
		return nil
	}
	why := "there are no boxes"
	if o.Layers != nil {
		why = ""
		if err := o.Layers(ctx); err != nil {
			why = "boxes show no layers: " + err.Error()
		} else if err := tryLayers(filepath.Join(r.cache, "bases")); err != nil {
			why = "the cache cannot hold layers: " + err.Error()
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // what was found means nothing
	}
	if r.backend, r.backendWhy = Overlay, why; why == "" {
		return nil
	}
	r.backend = Fresh
	if o.Backend == Overlay {
		return &BackendError{Overlay, why}
	}
	return nil
}
