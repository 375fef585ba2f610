package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"skein/sandbox"
)

// What programs say when they fail for want of a path or of the network, and what the kernel
// counts when they say nothing, is told of commands that failed, and of no others.
func TestWanted(t *testing.T) {
	dir := repository(t)
	write(t, filepath.Join(dir, "locked"), "")
	if err := os.Chmod(filepath.Join(dir, "locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "main.go"), "package main\n\nimport (\n\t\"fmt\"\n\t\"net\"\n\t\"os\"\n)\n\nfunc main() {\n"+
		"\t_, err := net.Dial(\"tcp\", \"192.0.2.1:80\")\n\tfmt.Println(err)\n\terr = os.WriteFile(\"/etc/new\", nil, 0o600)\n\tfmt.Println(err)\n\tos.Exit(1)\n}\n")
	path := func(p string) sandbox.Want { return sandbox.Want{Kind: "path", Detail: p} }
	network := func(host string) sandbox.Want { return sandbox.Want{Kind: "network", Detail: host} }
	writer := open(t, sandbox.Policy{Workspace: dir, Writable: true})
	reader := open(t, sandbox.Policy{Workspace: dir})
	for _, row := range []struct {
		program, script string
		in              *sandbox.Box
		want            []sandbox.Want
	}{
		{"touch", "touch /etc/new", writer, []sandbox.Want{path("/etc/new")}},
		{"touch", "touch README.md", reader, []sandbox.Want{path("README.md")}},
		{"cp", "cp README.md '/etc/new file'", writer, []sandbox.Want{path("/etc/new file")}},
		{"mkdir", "mkdir /usr/a /usr/b", writer, []sandbox.Want{path("/usr/a"), path("/usr/b")}},
		{"bash", "echo x > /etc/new", writer, []sandbox.Want{path("/etc/new")}},
		{"bash", "echo x > sub/f", reader, []sandbox.Want{path("sub/f")}},
		{"git", "git add -A", writer, []sandbox.Want{path(dir + "/.git/index.lock")}},
		{"git", "git clone -q https://host.invalid/x " + "y", writer, []sandbox.Want{network("host.invalid")}},
		{"curl", "curl -sS https://host.invalid/", writer, []sandbox.Want{network("host.invalid")}},
		{"bash", "echo x > /dev/tcp/192.0.2.1/80", writer, []sandbox.Want{network("")}},
		{"bash", "(echo x > /dev/tcp/192.0.2.1/80) 2>/dev/null", writer, []sandbox.Want{network("")}}, // nothing is said
		{"python3", "python3 -c 'open(\"/etc/new\", \"w\")'", writer, []sandbox.Want{path("/etc/new")}},
		{"python3", "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'", writer, []sandbox.Want{network("")}},
		{"go", "go run main.go", writer, []sandbox.Want{network(""), path("/etc/new")}},
		{"node", "node -e 'require(\"fs\").writeFileSync(\"/etc/new\", \"\")'", writer, []sandbox.Want{path("/etc/new")}},
		// What fails for another reason, or does not fail.
		{"cat", "cat absent", writer, nil},
		{"bash", "false", writer, nil},
		{"bash", "./README.md", writer, nil}, // not a program: more reach would not help
		{"touch", "touch /etc/new; true", writer, nil},
		{"bash", "(echo x > /dev/tcp/192.0.2.1/80); true", writer, nil},
		{"bash", "(echo x > /dev/tcp/127.0.0.1/1) 2>/dev/null", writer, nil}, // nobody listens in here
	} {
		t.Run(row.script, func(t *testing.T) {
			needProgram(t, row.program)
			for _, merge := range []bool{false, true} {
				c := bash(row.script)
				c.Merge, c.Env = merge, append([]string{"LC_ALL=C", "GOFLAGS=", "GOTOOLCHAIN=local", "GO111MODULE=off"}, hermetic...)
				o, err := row.in.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(o.Wanted, row.want) && (row.program != "go" || merge) { // its program prints, and not as errors
					t.Errorf("%s: exit %d, wanted %q, want %q; output:\n%s", row.script, o.Exit, o.Wanted, row.want, o.Combined)
				}
			}
		})
	}
	o, err := outside(t, dir).Run(t.Context(), bash("touch /nowhere/new"))
	if err != nil || o.Exit == 0 || o.Wanted != nil {
		t.Errorf("without a box: exit %d, wanted %q, %v, want nothing", o.Exit, o.Wanted, err)
	}
}

// However much a command prints, little is told.
func TestWantedIsBounded(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir()})
	o, err := box.Run(t.Context(), bash("for i in $(seq 100); do echo \"x: /p$i: Read-only file system\" >&2; echo \"x: /p$i: Read-only file system\" >&2; done; exit 1"))
	if err != nil {
		t.Fatal(err)
	}
	var want []sandbox.Want
	for i := range 8 {
		want = append(want, sandbox.Want{Kind: "path", Detail: fmt.Sprintf("/p%d", i+1)})
	}
	if !slices.Equal(o.Wanted, want) {
		t.Errorf("wanted %q, want the first eight", o.Wanted)
	}
}
