package orchestrator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skein/orchestrator"
	"skein/worktree"
)

// A kept change that grew old goes by itself at the end of a run, and its commit is told: with
// that it can be had back.
func TestWhatIsDroppedIsSaid(t *testing.T) {
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "one", access: write}
    - delegate_task: {task: "two", access: write}
- when: {agent: "0.1", turn: 1}
  call: {write_file: {path: new, content: "one\n"}}
- when: {agent: "0.2", turn: 1}
  call: {write_file: {path: new, content: "two\n"}}
- say: done
`).repo(map[string]string{"a": "a\n"})
	r.run(nil)
	repo, err := worktree.Open(t.Context(), r.dir, worktree.Options{Cache: r.cache})
	if err != nil {
		t.Fatal(err)
	}
	list, err := repo.Kept(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("Kept = %+v, %v, want the change that conflicts", list, err)
	}
	k := list[0]
	store := filepath.Join(r.dir, ".git/skein")
	tag := "object " + k.Commit + "\ntype commit\ntag kept\ntagger skein <skein@localhost> 1700000000 +0000\n\nwhy\n"
	r.write(map[string]string{".git/tag": tag})
	id := strings.TrimSpace(r.git("--git-dir", store, "hash-object", "-t", "tag", "-w", filepath.Join(r.dir, ".git/tag")))
	r.git("--git-dir", store, "update-ref", k.Ref, id)
	past := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(store, "collected"), past, past); err != nil {
		t.Fatal(err)
	}
	r.script = "- say: done\n"
	r.run(func(o *orchestrator.Options) { o.Session = "s2" })
	told := slices.ContainsFunc(r.notices(), func(text string) bool {
		return strings.Contains(text, "0.2 of run s1 is dropped") && strings.Contains(text, k.Commit)
	})
	if list, err = repo.Kept(t.Context(), ""); err != nil || len(list) > 0 || !told {
		t.Errorf("Kept = %+v, %v, said %q, want it gone, and its commit %s told", list, err, r.notices(), k.Commit)
	}
	r.git("--git-dir", store, "branch", "back", k.Commit)
}
