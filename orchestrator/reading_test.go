package orchestrator_test

import (
	"os"
	"path/filepath"
	"testing"

	"skein/agent/journal"
	"skein/orchestrator"
)

// Git reads what writers left in a box: shown by a hole in our own configuration of it, through
// which a program of the writer's choice runs. Outside of a box the same program has the
// user's rights.
func TestWhatWritersLeftIsReadInABox(t *testing.T) {
	test := func(t *testing.T, way string) {
		r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  calls:
    - write_file: {path: .gitattributes, content: "a filter=hole\n"}
    - write_file: {path: a, content: "by a writer\n"}
- say: done
`).repo(abc)
		trace := r.cache + "/trace"
		r.run(func(o *orchestrator.Options) {
			o.Copies, o.NoSandbox = way, way == ""
			watch := o.Watch
			o.Watch = func(e journal.Event) {
				watch(e)
				p, err := e.Decode()
				if c, ok := p.(*journal.Copied); ok && err == nil {
					hole := "[filter \"hole\"]\n\trequired\n\tclean = \"echo $SKEIN_BOX through the hole; touch '" + trace + "'; true\"\n"
					f, err := os.OpenFile(filepath.Dir(c.Path)+"/git/config", os.O_APPEND|os.O_WRONLY, 0)
					if err == nil {
						_, err = f.WriteString(hole)
					}
					if err != nil {
						t.Error(err)
					}
					_ = f.Close()
				}
			}
		})
		want, bare := "1 through the hole\n", ""
		if way == "" {
			want, bare = "through the hole\n", "the sandbox is off"
		}
		if got := r.read("a"); got != want {
			t.Errorf("merged a = %q, want %q: the hole proves nothing", got, want)
		}
		if _, err := os.Lstat(trace); (err == nil) != (way == "") {
			t.Errorf("trace of the writer's program: %v, want one only where there is no box", err)
		}
		collected, _, _ := of[journal.Collected](r)
		if len(collected) != 1 || collected[0].Bare != bare {
			t.Errorf("collected = %+v, want one, outside of a box because %q", collected, bare)
		}
	}
	t.Run("bare", func(t *testing.T) { test(t, "") })
	eachWay(t, test)
}

// The user's own rules about ignored files and line ends hold for what writers did, though a
// box shows nothing of the user's home.
func TestTheUsersRulesHoldInTheBox(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for name, text := range map[string]string{"ignore": "*.mine\n", "attributes": "*.txt text\n"} {
		if err := os.MkdirAll(home+"/.config/git", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(home+"/.config/git/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	eachWay(t, func(t *testing.T, way string) {
		r := newRig(t, `
- when: {agent: "0", turn: 1}
  call: {delegate_task: {task: "one", access: write}}
- when: {agent: "0.1", turn: 1}
  call: {bash: {command: "echo x >x.mine && printf 'one\\r\\n' >one.txt"}}
- say: done
`).repo(abc)
		r.run(func(o *orchestrator.Options) { o.Copies = way })
		collected, _, _ := of[journal.Collected](r)
		if len(collected) != 1 || len(collected[0].Files) != 1 || collected[0].Files[0] != "one.txt" || collected[0].Bare != "" {
			t.Fatalf("collected = %+v, want one.txt alone, in a box", collected)
		}
		if got := r.read("one.txt"); got != "one\n" {
			t.Errorf("merged one.txt = %q, want it with the line ends of text", got)
		}
	})
}
