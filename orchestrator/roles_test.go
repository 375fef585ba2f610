package orchestrator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skein/orchestrator"
)

const reviewer = "---\ndescription: finds faults\naccess: read\ntools: [read_file, delegate_task]\n---\nTrust nothing.\n"

// A role takes away from what the call would allow: tools, writing, and what its children have.
func TestRolesNarrow(t *testing.T) {
	t.Parallel()
	needBox(t)
	r := newRig(t, `
- when: {agent: "0", turn: 1}
  calls:
    - delegate_task: {task: "review", role: reviewer}
    - delegate_task: {task: "review and change", role: reviewer, access: write}
    - delegate_task: {task: "change", role: editor, access: write}
    - delegate_task: {task: "pass", role: ../../etc/passwd}
    - delegate_task: {task: "think", role: thinker}
- when: {agent: ["0.1", "0.2"], turn: 1}
  calls:
    - read_file: {path: a.txt}
    - bash: {command: "true"}
- when: {agent: "0.1", turn: 2}
  call: {delegate_task: {task: "deeper", role: editor}}
- when: {agent: "0.1.1", turn: 1}
  calls:
    - read_file: {path: a.txt}
    - grep: {pattern: top}
- when: {agent: "0.2", turn: 2}
  call: {write_file: {path: n.txt, content: "n\n"}}
- when: {agent: "0.3", turn: 1}
  calls:
    - read_file: {path: a.txt}
    - delegate_task: {task: "more"}
- say: done
`).repo(abc)
	r.write(map[string]string{
		".agents/agents/reviewer.md": reviewer,
		".agents/agents/editor.md":   "---\ndescription: changes\naccess: write\ntools: [read_file, write_file, grep, bash]\n---\nMake it short.\n",
		".agents/agents/thinker.md":  "---\ndescription: thinks\ntools: []\n---\n",
		".agents/agents/notes.txt":   "no role",
	})
	r.run(func(o *orchestrator.Options) { o.MaxDepth = 2 })
	wants(t, r.reports(),
		"· completed · 3 turns\ndenied: 1 (bash: ",
		"role reviewer may only read",
		"merged · 1 file · +1 −0 · n.txt\ncommands: true (exit 0)",
		"role is \"../../etc/passwd\", not one of: editor, reviewer, thinker\nThey are described",
		"· completed · 2 turns\ndenied: 2 (read_file: ")
	var told []string
	for _, agent := range []string{"0.1", "0.1.1", "0.2", "0.3"} {
		for _, res := range r.results(agent) {
			told = append(told, agent+" "+res.Tool+": "+res.Text)
		}
	}
	wants(t, told,
		"0.1 read_file: ", "0.1 bash: bash refused: your role has only these tools: read_file, delegate_task.", "0.1 delegate_task: child 1 of 1",
		"0.1.1 read_file: ", "0.1.1 grep: grep refused: your role has only these tools: read_file.", // those of both roles
		"0.2 read_file: ", "0.2 bash: ", "0.2 write_file: ",
		"0.3 read_file: read_file refused: your role has only these tools: none.", "0.3 delegate_task: delegate_task refused: your role has only these tools: none.")
	first := string(r.bodies("0")[0])
	if list := `- editor: changes\n- reviewer: finds faults\n- thinker: thinks\n`; !strings.Contains(first, list) {
		t.Errorf("the parent is not shown the roles: %s", first)
	}
	child := string(r.bodies("0.1")[0])
	if !strings.Contains(child, `Your role, as this project describes reviewer:\nTrust nothing.\n\nTask:\nreview"`) || !strings.Contains(child, "You may delegate parts of it.") {
		t.Errorf("the child is told %s", child)
	}
	if think := string(r.bodies("0.3")[0]); !strings.Contains(think, "Use no tools: all are refused.") || !strings.Contains(think, "Do not delegate") {
		t.Errorf("the child without tools is told %s", think)
	}
	_, a, _ := strings.Cut(first, `],"tools"`)
	if _, b, _ := strings.Cut(child, `],"tools"`); a != b {
		t.Error("the tool list of a child with a role has other bytes than its parent's")
	}
}

// What is wrong with the files of roles is told once, by file and line, and not offered.
func TestBadRolesAreNotOffered(t *testing.T) {
	t.Parallel()
	r := newRig(t, `[{say: done}]`)
	outside := filepath.Join(t.TempDir(), "outside.md")
	if err := os.WriteFile(outside, []byte(reviewer), 0o644); err != nil {
		t.Fatal(err)
	}
	r.write(map[string]string{
		".agents/agents/a-good.md":   reviewer,
		".agents/agents/b-bomb.md":   "---\na: &a [x, x]\ndescription: *a\n---\n",
		".agents/agents/c-big.md":    reviewer + strings.Repeat("x", 10<<20),
		".agents/agents/d name.md":   reviewer,
		".agents/agents/f-model.md":  "---\ndescription: dear\nmodel: openai/dear\n---\n",
		".agents/agents/g-dir.md/x":  "",
		".agents/agents/h-access.md": "---\ndescription: x\naccess: admin\n---\n",
		"inside.md":                  reviewer,
	})
	for name, target := range map[string]string{"e-out.md": outside, "i-in.md": "../../inside.md"} {
		if err := os.Symlink(target, filepath.Join(r.dir, ".agents/agents", name)); err != nil {
			t.Fatal(err)
		}
	}
	r.run(func(o *orchestrator.Options) { o.Tools = []string{"bash", "delegate_task"} }) // fewer than roles name
	var told []string
	for _, n := range r.notices() {
		if strings.HasPrefix(n, "roles of this project: ") {
			told = append(told, strings.Split(n, "; ")...)
		}
	}
	wants(t, told,
		".agents/agents/b-bomb.md:2: anchors, aliases",
		".agents/agents/c-big.md: it has more than 32768 bytes",
		".agents/agents/d name.md: a role is named by letters",
		".agents/agents/e-out.md: ",
		".agents/agents/f-model.md: offered without its model openai/dear",
		"2 more")
	body := string(r.bodies("0")[0])
	if want := `for subagents:\n- a-good: finds faults\n- f-model: dear\n- i-in: finds faults\nThe subagent`; !strings.Contains(body, want) {
		t.Errorf("the parent is offered %s, want %q", body, want)
	}
}

// A folder of roles that leads out of the workspace, or is none, offers none.
func TestRolesOutsideOfTheWorkspace(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "r.md"), []byte(reviewer), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(at string) error{
		"link": func(at string) error { return os.Symlink(outside, at) },
		"file": func(at string) error { return os.WriteFile(at, nil, 0o644) },
	} {
		r := newRig(t, `[{say: done}]`)
		if err := os.Mkdir(filepath.Join(r.dir, ".agents"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := make(filepath.Join(r.dir, ".agents/agents")); err != nil {
			t.Fatal(err)
		}
		r.run(nil)
		if told := strings.Join(r.notices(), "\n"); !strings.Contains(told, "roles of this project: .agents/agents: ") {
			t.Errorf("%s: notices %q, want one of the folder", name, told)
		}
		if body := string(r.bodies("0")[0]); strings.Contains(body, "Roles that") {
			t.Errorf("%s: roles are offered: %s", name, body)
		}
	}
}

// So many roles are offered, in the order of their names; a folder of files without end has none.
func TestManyRoles(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{60: "there are more than 50 roles", 1001: "it holds more than 1000 files"} {
		r := newRig(t, `[{say: done}]`)
		files := map[string]string{".agents/agents/a-b.md": reviewer, ".agents/agents/a.md": reviewer}
		for i := range n {
			files[fmt.Sprintf(".agents/agents/r%d.md", i)] = reviewer
		}
		r.write(files)
		r.run(nil)
		if told := strings.Join(r.notices(), "\n"); !strings.Contains(told, want) {
			t.Errorf("%d roles: notices %q, want %q", n, told, want)
		}
		body := string(r.bodies("0")[0])
		if got, first := strings.Count(body, "finds faults"), strings.Contains(body, `:\n- a: finds faults\n- a-b: `); n == 60 && (got != 50 || !first) || n > 1000 && got != 0 {
			t.Errorf("%d roles: %d are offered, first a and a-b: %v", n, got, first)
		}
	}
}
