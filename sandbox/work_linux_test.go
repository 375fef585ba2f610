package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"skein/sandbox"
)

// A job is legitimate work: it does the same in a box and outside, and writes to temporary
// folders only.
type job struct {
	name    string
	program string // that it needs
	script  string
	want    string
}

var jobs = []job{
	{"go build", "go", `go build -o $(mktemp -d)/m . && echo built`, "built\n"},
	{"go test", "go", `go test -count=1 . >$(mktemp) && echo tested`, "tested\n"},
	{"go vet", "go", `go vet . && echo vetted`, "vetted\n"},
	{"node", "node", `node work.js`, "exec spawn worker file served\n"},
	{"python", "python3", `python3 work.py`, "12 12 True async\n"},
	{"git status", "git", `git status --short; echo x`, "?? untracked\nx\n"},
	{"git log", "git", `git log --format=%s`, "first\n"},
	{"git diff", "git", `git diff --stat HEAD~0; git diff --no-index --numstat m.go m_test.go | wc -l`, "1\n"},
	{"git commit", "git", `d=$(mktemp -d); git clone -q . $d/c && cd $d/c && echo x > x && git add x && git commit -qm second && git log --format=%s`, "second\nfirst\n"},
	{"make", "make", `make -s -j2 OUT=$(mktemp -d) && echo made`, "made\n"},
	{"job control", "bash", `exec 2>/dev/null; set -m; sleep 5 & kill -STOP %1; wait %1; echo $?; kill -CONT %1; kill %1; wait %1; echo $?`, "147\n143\n"},
	{"process substitution", "bash", `diff <(echo a) <(echo b) | wc -l; echo c | tee >(cat >/dev/null)`, "4\nc\n"},
	{"coprocess", "bash", `coproc cat; echo x >&${COPROC[1]}; read -r l <&${COPROC[0]}; echo $l`, "x\n"},
	{"pipes and traps", "bash", `trap 'echo bye' EXIT; mkfifo $(mktemp -d)/p; seq 3 | paste -sd+ | tr -d '\n' | xargs echo; timeout 5 true`, "1+2+3\nbye\n"},
	{"temporary files", "mktemp", `d=$(mktemp -d) f=$(mktemp -p $d) && echo x > $f && chmod 600 $f && ln -s $f $d/l && ln $f $d/h && mv $d/h $d/i && cat $d/l $d/i && rm -r $d`, "x\nx\n"},
	{"terminal", "script", `script -qec 'tty >/dev/null && echo tty' /dev/null | tr -d '\r'`, "tty\n"},
}

// project makes a repository with all that the jobs need.
func project(t testing.TB) string {
	t.Helper()
	needProgram(t, "git")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOTOOLCHAIN", "local")
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.CopyFS(dir, os.DirFS("testdata/work")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.org/m\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "m.go"), "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(sum(1, 2)) }\n\nfunc sum(a, b int) int { return a + b }\n")
	write(t, filepath.Join(dir, "m_test.go"), "package main\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n")
	must(t, outside(t, dir), "git init -q -b main && git add . && git commit -qm first && echo x > untracked")
	return dir
}

// What people do all day goes on in boxes, and comes out the same.
func TestWorkInBox(t *testing.T) {
	dir := project(t)
	bare := outside(t, dir)
	boxes := map[string]*sandbox.Box{
		"reader": open(t, sandbox.Policy{Workspace: dir}),
		"writer": open(t, sandbox.Policy{Workspace: dir, Writable: true}),
		"copy":   open(t, sandbox.Policy{Workspace: dir, Writable: true, GitDir: filepath.Join(dir, ".git")}),
	}
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			needProgram(t, j.program)
			if got := must(t, bare, j.script); got != j.want {
				t.Fatalf("control: %s = %q outside of a box, want %q", j.script, got, j.want)
			}
			for kind, box := range boxes {
				if got, exit := sh(t, box, j.script, hermetic...); got != j.want || exit != 0 {
					t.Errorf("%s by a %s: exit %d, %q, want %q", j.script, kind, exit, got, j.want)
				}
			}
		})
	}
	must(t, boxes["copy"], "echo y > y && git add y && git commit -qm second && git stash -q -u && git stash pop -q && git checkout -qb other && git gc -q --prune=now", hermetic...)
	if got := must(t, bare, "git log --format=%s; git branch --show-current; git fsck --no-dangling 2>&1"); got != "second\nfirst\nother\n" {
		t.Errorf("the copy afterwards: %q", got)
	}
}
