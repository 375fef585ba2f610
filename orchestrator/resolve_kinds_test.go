package orchestrator_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"skein/agent"
	"skein/agent/journal"
	"skein/delegate"
)

// Whatever kind of conflict it is, a solution that does not hold is refused, and one that does is
// merged. What no tree can show to a resolver is reported and kept.
func TestConflictsOfEachKind(t *testing.T) {
	for _, tt := range []struct {
		kind      string
		one, two  string // what the writers do
		bad, good string // what the resolvers do; "" is no call at all
		why       string // the bad one is refused; "" if nobody is asked to resolve it
		want      string // a command that succeeds in the tree at the end
	}{
		{"content", `sed -i 's/^5$/one/' text`, `sed -i 's/^5$/two/' text`, `true`, `sed -i '/^[<=>]\{7\}/d' text`, "conflict markers are left in text", `grep -q one text && grep -q two text`},
		{"add/add", `echo one > new`, `echo two > new`, `rm new`, `printf 'one\ntwo\n' > new`, "it removed new, which both changes have", `test "$(cat new)" = "one
two"`},
		{"modify/delete", `rm text`, `sed -i 's/^5$/two/' text`, "", `true`, "it made no tool call", `grep -q two text`},
		{"modify/delete", `sed -i 's/^5$/one/' text`, `rm text`, `true`, `rm text`, "nothing of the change is left in it", `! test -e text`},
		{"mode", `echo same > new; chmod 755 new`, `echo same > new`, "", `chmod 644 new`, "it made no tool call", `! test -x new`},
		{"symlink", `ln -s one link`, `ln -s two link`, `true`, `rm link; ln -s three link`, "nothing of the change is left in it", `test "$(readlink link)" = three`},
		{"binary", `printf 'one\0' > binary`, `printf 'two\0' > binary`, `true`, `printf 'both\0' > binary`, "nothing of the change is left in it", `test "$(tr -d '\0' < binary)" = both`},
		{"rename/edit", `git mv long moved; echo one >> moved`, `echo two >> long`, `true`, `sed -i '/^[<=>]\{7\}/d' moved`, "conflict markers are left in moved", `grep -q one moved && grep -q two moved && ! test -e long`},
		{"rename/rename", `mv long x`, `mv long y`, `echo z > z`, `rm x`, "it changed files that do not conflict: z", `test -e y && ! test -e x && ! test -e long`},
		{"rename/rename", `mv long x; echo one >> x`, `mv long y; echo two >> y`, `rm x`, `rm x; sed -i '/^[<=>]\{7\}/d' y`, "conflict markers are left in y", `grep -q one y && grep -q two y && ! test -e x`},
		{"content", `sed -i 's/^5$/one/' text`, `printf '%s\n' 1 2 3 4 two ======= 6 7 8 9 > text`, `sed -i '/^=\{7\}$/d' text`, `printf '%s\n' 1 2 3 4 one two ======= 6 7 8 9 > text`, "conflict markers are left in text", `grep -q ===== text`},
		{"rename/delete", `mv long moved; echo one >> moved`, `rm long`, `echo x > text`, `rm moved`, "it changed files that do not conflict: text", `! test -e moved && ! test -e long`},
		{"file/directory", `echo one > new`, `mkdir new; echo two > new/x`, `true`, `mkdir -p new; cat new~* > new/one; rm new~*`, "a name that git made up", `test "$(cat new/one)" = one && test "$(cat new/x)" = two`},
		{"directory rename", `mv dir other`, `echo new > dir/new`, "", `true`, "it made no tool call", `test -e other/new`},
		{"in the way", `echo one > one`, `echo way.not > .gitignore; echo two > way.x`, "", "", "", `test "$(cat way.x)" = theirs && test "$(cat .gitignore)" = 'way.*'`},
		{"case", `mkdir n; echo one > n/Readme`, `mkdir n; echo two > n/README`, "", "", "", `test "$(cat n/*)" = one`},
	} {
		t.Run(tt.kind+" "+tt.two, func(t *testing.T) {
			t.Parallel()
			script := `
- when: {agent: "0", turn: 1}
  calls: [{delegate_task: {task: "one", access: write}}, {delegate_task: {task: "two", access: write}}]
`
			for i, does := range []string{tt.one, tt.two, tt.bad, tt.good} {
				if does != "" {
					script += fmt.Sprintf("- when: {agent: \"0.%d\", turn: 1}\n  call: {bash: {command: %q}}\n", i+1, does)
				}
			}
			r := newRig(t, script+andDone).repo(map[string]string{
				"text": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "binary": "\x00", ".gitignore": "way.*\n",
				"long": strings.Repeat("a line of some length\n", 30), "dir/x": strings.Repeat("x\n", 30), "dir/y": strings.Repeat("y\n", 30),
			})
			r.write(map[string]string{"way.x": "theirs\n"})
			if tt.kind == "case" {
				r.git("config", "core.ignoreCase", "true")
			}
			out := r.run(unboxed)
			s := r.settled()
			if out.Stop != agent.Completed || len(s) != 2 || s[0].Change != delegate.Merged {
				t.Fatalf("stopped as %s, settled %+v", out.Stop, s)
			}
			isKind := func(c string) bool { return strings.HasSuffix(c, "("+tt.kind+")") }
			if !slices.ContainsFunc(s[1].Conflicts, isKind) {
				t.Errorf("conflicts %q, want %s", s[1].Conflicts, tt.kind)
			}
			tries, _, _ := of[journal.Resolved](r)
			if tt.why == "" {
				if s[1].Change != delegate.Conflict || s[1].Ref == "" || len(tries) > 0 {
					t.Errorf("settled %+v after %+v, want it kept", s[1], tries)
				}
			} else if s[1].Change != delegate.Merged || s[1].Resolved != "0.4" || len(tries) != 2 || !strings.Contains(tries[0].Cause, tt.why) {
				t.Errorf("settled %+v after %+v, want the first refused: %s", s[1], tries, tt.why)
			}
			check := exec.CommandContext(t.Context(), "bash", "-c", tt.want)
			check.Dir = r.dir
			if err := check.Run(); err != nil {
				t.Errorf("%s = %v, in %s", tt.want, err, r.tree())
			}
			r.nothingLeft(s[1].Ref)
		})
	}
}
