package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skein/sandbox"
)

// A process ends with the command that started it, and no sooner: it cannot pass for one of a
// command beside it, whose tag it can read.
func TestProcessKeepsItsCommand(t *testing.T) {
	for _, name := range []string{"prlimit", "ulimit"} {
		needProgram(t, "prlimit")
		change := "ulimit -q $q"
		if name == "prlimit" {
			change = "prlimit --msgqueue=$q:$q --pid $BASHPID"
		}
		// What hides is out of its session and has lost its parent.
		script := func(pid, m string) string {
			return "exec 2>&1; q=$(prlimit --pid " + pid + " --msgqueue --noheadings -o HARD | tr -d ' ') || exit 1\n" +
				"(setsid bash -c 'q='$q'; " + change + " && echo changed; exec sleep " + m + " >/dev/null 2>&1' & ); sleep 0.3"
		}
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			box := open(t, sandbox.Policy{Workspace: work, Writable: true})
			sibling := mark()
			// The later one has the lower number, which anybody could take.
			early := start(t, box, bash("until [ -e go ]; do sleep 0.01; done; "+script("$(cat pid)", sibling+"1")))
			late := start(t, box, bash("echo $$ > new && mv new pid; exec sleep "+sibling))
			eventually(t, 10*time.Second, "the later command runs", func() bool { return alive(t, "sleep\x00"+sibling+"\x00") == 1 })
			write(t, filepath.Join(work, "go"), "")
			o, err := early.Result()
			if err != nil || o.Exit != 0 || !strings.Contains(string(o.Combined), "not permitted") {
				t.Errorf("the command that hides a process: exit %d, %v, want a refusal; output:\n%s", o.Exit, err, o.Combined)
			}
			if n := alive(t, "sleep\x00"+sibling+"1\x00"); n != 0 {
				t.Errorf("%d processes live on after their command, want none", n)
			}
			if n := alive(t, "sleep\x00"+sibling+"\x00"); n != 1 {
				t.Errorf("%d processes of the command beside it live, want 1", n)
			}
			if err := late.Stop(t.Context()); err != nil {
				t.Error(err)
			}

			m := mark()
			if out := must(t, outside(t, work), script("$$", m)); !strings.Contains(out, "changed") {
				t.Errorf("control: outside of a box %q, want a change", out)
			}
			endMarked(t, m)
		})
	}
}
