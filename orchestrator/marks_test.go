package orchestrator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/agent/journal"
	"skein/orchestrator"
)

// A reader's report names the files that changed since it was shown something of them: edited,
// replaced or removed, however it read them; not those that it read again since, and none that it
// was shown nothing of. A frozen copy does not change.
func TestReadersAreMarked(t *testing.T) {
	t.Parallel()
	const script = `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "read all"}}
- when: {agent: "0.1", turn: 1}
  calls:
    - read_file: {path: same}
    - read_file: {path: edited}
    - read_file: {path: replaced}
    - read_file: {path: removed}
    - read_file: {path: again}
    - grep: {pattern: needle}
- when: {agent: "0.1", turn: 2}
  call: {read_file: {path: again}}
- say: done
`
	files := map[string]string{
		"same": "s\n", "edited": "e\n", "replaced": "r\n", "removed": "x\n", "again": "a\n", "hit": "a needle\n", "no hit": "hay\n",
	}
	edit := func(t *testing.T, r *rig) {
		r.write(map[string]string{"edited": "other\n", "again": "other\n", "hit": "no more\n", "no hit": "other\n", "new": "n\n"})
		for _, err := range []error{
			os.WriteFile(filepath.Join(r.dir, "swap"), []byte("R\n"), 0o644),
			os.Rename(filepath.Join(r.dir, "swap"), filepath.Join(r.dir, "replaced")),
			os.Remove(filepath.Join(r.dir, "removed")),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	const line = "\nchanged since it read them: "
	for name, tt := range map[string]struct {
		readers orchestrator.Readers
		edits   bool
		want    string
	}{
		"live":            {orchestrator.Live, true, "edited, hit, removed, replaced\n"},
		"nothing changes": {orchestrator.Live, false, ""},
		"frozen":          {orchestrator.Frozen, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, script).repo(files)
			r.run(func(o *orchestrator.Options) {
				o.Readers, o.NoSandbox = tt.readers, true
				watch := o.Watch
				o.Watch = func(e journal.Event) {
					watch(e)
					if e.Agent == "0.1" && e.Kind == "result" && len(r.results("0.1")) == 6 && tt.edits {
						edit(t, r)
					}
				}
			})
			s := r.settled()[0]
			_, got, marked := strings.Cut(s.Report, line)
			if marked != (tt.want != "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("report = %q, want %q", s.Report, line+tt.want)
			}
			if list := strings.Join(s.Stale, ", "); list != strings.TrimSuffix(tt.want, "\n") || strings.Contains(s.People, strings.TrimSpace(line)) != marked {
				t.Errorf("stale %q, people are told %q", list, s.People)
			}
		})
	}
}
