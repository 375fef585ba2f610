package orchestrator

import (
	"errors"
	"fmt"
	"testing"

	"skein/worktree"
)

// A model is told why its child got no place, and what to do about it, in words without
// paths of this machine.
func TestRefusalTellsTheCause(t *testing.T) {
	for _, test := range []struct {
		cause error
		want  string
	}{
		{&worktree.BackendError{Backend: worktree.Overlay, Why: "the tree has submodules"}, "no overlay copies here: the tree has submodules: let skein choose: --worktree-backend auto"},
		{&worktree.BackendError{Backend: worktree.Overlay, Why: "the cache cannot hold layers: /home/u/x: no"}, "its workspace could not be made"},
		{&worktree.UnmergedError{Path: "dir/a"}, "unmerged entries in the index, first dir/a: solve the merge first (git status lists the files), then git add them"},
		{&worktree.LockedError{}, "another run held the repository for too long: end it, or wait"},
		{errors.New("/tmp/x: odd"), "its workspace could not be made"},
	} {
		if got := (&refusal{fmt.Errorf("snapshot /home/u: %w", test.cause)}).Error(); got != test.want {
			t.Errorf("refusal of %v = %q, want %q", test.cause, got, test.want)
		}
	}
}
