package orchestrator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/orchestrator"
	"skein/tools/gate"
)

// The same calls are decided on by the same gate whoever makes them: the first agent, readers and
// writers of it, and theirs.
func TestTheGateAtEveryDepth(t *testing.T) {
	needBox(t)
	const calls = `
- when: {turn: 1}
  calls:
    - read_file: {path: a.txt}
    - write_file: {path: n.txt, content: "n\n"}
    - search_replace: {path: a.txt, search: "top\n", replace: "new\n"}
    - bash: {command: "touch made && echo made it"}
    - delegate_task: {task: "read"}
    - delegate_task: {task: "write", access: write}
- say: done
`
	// Decisions on those calls, at the last depth with the two last of them denied.
	const (
		readers = "allow deny deny allow allow deny"
		all     = "allow allow allow allow allow allow"
	)
	roles := map[string]string{"0": "first", "0.1": "reader", "0.2": "writer", "0.1.1": "reader", "0.2.1": "reader", "0.2.2": "writer"}
	for _, tt := range []struct {
		access                gate.Access
		first, reader, writer string
	}{
		{gate.ReadOnly, readers, readers, ""},
		{gate.Confirm, "allow ask ask ask allow allow", readers, all},
		{gate.Auto, all, readers, all},
	} {
		t.Run(string(tt.access), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, calls).repo(abc)
			out := r.run(func(o *orchestrator.Options) {
				o.Access, o.MaxDepth = tt.access, 2
				o.Asker = replies(func(gate.Question) gate.Answer { return gate.Answer{Granted: true} })
			})
			if out.Stop != agent.Completed {
				t.Fatalf("stopped as %s (%s)", out.Stop, out.Cause)
			}
			got := map[string][]string{}
			list, agents, _ := of[journal.Call](r)
			for i, c := range list {
				got[agents[i]] = append(got[agents[i]], c.Decision)
			}
			for who, role := range roles {
				want := strings.Fields(map[string]string{"first": tt.first, "reader": tt.reader, "writer": tt.writer}[role])
				if tt.writer == "" && strings.HasPrefix(who, "0.2") {
					want = nil // there are none
				}
				if strings.Count(who, ".") == 2 && want != nil {
					want[4], want[5] = "deny", "deny"
				}
				if !slices.Equal(got[who], want) {
					t.Errorf("agent %s, a %s: %q, want %q", who, role, got[who], want)
				}
				if want == nil {
					continue
				}
				bash := r.results(who)[3]
				if held := strings.Contains(bash.Text, "Read-only file system"); held == bash.OK || held != (role == "reader" || tt.access == gate.ReadOnly) {
					t.Errorf("agent %s, a %s: touch says %q", who, role, bash.Text)
				}
			}
			if _, err := os.Stat(filepath.Join(r.dir, "made")); (err == nil) != (tt.access != gate.ReadOnly) {
				t.Errorf("the file that commands make is there: %v", err)
			}
			if n := len(got); n != map[bool]int{true: 3, false: 6}[tt.writer == ""] {
				t.Errorf("%d agents: %v", n, fmt.Sprint(got))
			}
		})
	}
}
