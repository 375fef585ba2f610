package worktree_test

import (
	"errors"
	"testing"

	"skein/worktree"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		what       worktree.Recovered
		text, hint string
	}{
		{
			worktree.Recovered{Session: "s", Run: "1", Action: worktree.RolledBack, Paths: []string{"a", "b"}},
			"a change of run s/1 that stood half applied: rolled back", "look at a, b",
		},
		{
			worktree.Recovered{Session: "s", Run: "1", Name: "0.2", Action: worktree.Kept, Ref: "refs/skein/s/1/kept/0.2-2", Folder: "/left"},
			"the copy of writer 0.2 of run s/1: kept", "see it with: skein worktrees show 0.2-2 --run s; files are in /left",
		},
		{
			worktree.Recovered{Session: "s", Run: "1", Name: "0.2", Action: worktree.Failed, Err: errors.New("disk full")},
			"the copy of writer 0.2 of run s/1: failed: disk full", "",
		},
	} {
		if text, hint := tt.what.Describe(); text != tt.text || hint != tt.hint {
			t.Errorf("Describe(%+v) = %q, %q, want %q, %q", tt.what, text, hint, tt.text, tt.hint)
		}
	}
}
