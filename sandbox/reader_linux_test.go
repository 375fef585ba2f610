package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skein/sandbox"
)

// Each row must fail for a reader, and does work outside on a copy of the same files.
func TestReaderCannot(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".ssh/id_ed25519"), "planted key")
	write(t, filepath.Join(home, ".netrc"), "planted password")
	t.Setenv("HOME", home)
	agent := t.TempDir()
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(agent, "agent.1"))
	write(t, filepath.Join(agent, "agent.1"), "planted socket")

	inside, control := repository(t), repository(t)
	program := self(t, inside)
	tcp, udp, socket := listeners(t)
	box := open(t, sandbox.Policy{Workspace: inside})
	bare := outside(t, control)
	before := must(t, outside(t, inside), "find . -printf '%p %m %s %T@ %U %l\n' | sort")

	// A number alone may be that of a process in the box.
	comm := strings.TrimSpace(read(t, "/proc/self/comm"))
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, row := range []struct{ name, script string }{
		{"change", "echo x > README.md"},
		{"append", "echo x >> README.md"},
		{"create", "echo x > new"},
		{"truncate", "truncate -s 0 README.md"},
		{"chmod", "chmod 600 README.md"},
		{"times", "touch README.md"},
		{"own", "chown $(id -u) README.md"},
		{"folder", "mkdir d"},
		{"hard link", "ln README.md hard"},
		{"symlink", "ln -s README.md soft"},
		{"rename", "mv sub/f sub/g"},
		{"remove", "rm README.md"},
		{"commit", "git commit --allow-empty -m second"},
		{"stage", "git add -A"},
		{"hook", "echo exit > .git/hooks/pre-commit"},
		{"config", "git config core.fsmonitor /bin/true"},
		{"write elsewhere", "echo x > " + elsewhere},
		{"TCP", fmt.Sprintf("echo x > /dev/tcp/127.0.0.1/%d", tcp)},
		{"TCP by program", fmt.Sprintf("%s=dial %s tcp4 127.0.0.1:%d", helper, program, tcp)},
		{"unix socket", fmt.Sprintf("%s=dial %s unix %s", helper, program, socket)},
		{"secret of the user", "cat " + home + "/.ssh/id_ed25519"},
		{"file of the user", "grep planted " + home + "/.netrc"},
		{"agent's socket", "cat " + agent + "/agent.1"},
		{"signal", fmt.Sprintf("grep -qx %s /proc/%d/comm && kill -0 %[2]d", comm, os.Getpid())},
		{"environment of others", fmt.Sprintf("grep -qx %s /proc/%d/comm && grep -q . /proc/%[2]d/environ", comm, os.Getpid())},
	} {
		t.Run(row.name, func(t *testing.T) {
			if out, exit := sh(t, bare, row.script); exit != 0 {
				t.Fatalf("control: %s: exit %d, want 0 outside of a box; output:\n%s", row.script, exit, out)
			}
			if out, exit := sh(t, box, row.script, hermetic...); exit == 0 {
				t.Errorf("%s: exit 0 in a reader's box, want a failure; output:\n%s", row.script, out)
			}
			_ = os.Remove(elsewhere)
		})
	}
	// A datagram is sent into the void without an error: that it does not arrive counts.
	t.Run("UDP", func(t *testing.T) {
		script := fmt.Sprintf("%s=dial %s udp4 %s", helper, program, udp.LocalAddr())
		arrived := func() bool {
			_ = udp.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, _, err := udp.ReadFrom(make([]byte, 16))
			return err == nil
		}
		must(t, bare, script)
		if !arrived() {
			t.Fatal("control: a datagram from outside of a box did not arrive")
		}
		sh(t, box, script)
		if arrived() {
			t.Error("a datagram from a reader's box arrived")
		}
	})
	if after := must(t, outside(t, inside), "find . -printf '%p %m %s %T@ %U %l\n' | sort"); after != before {
		t.Errorf("the workspace changed:\nbefore\n%s\nafter\n%s", before, after)
	}
}

// What no command of a box may do; the control is that root, or anybody, can outside.
func TestNoPrivileges(t *testing.T) {
	box := open(t, sandbox.Policy{Workspace: t.TempDir(), Writable: true})
	for _, script := range []string{
		"cat /etc/shadow | grep -q .", "unshare -Ur true", "mount -t tmpfs none /mnt", "umount /proc", "umount -l /etc",
		"echo 1 > /proc/sys/user/max_user_namespaces", "echo core > /proc/sys/kernel/core_pattern", "chmod 666 /dev/null",
		"readlink /proc/1/fd/3", "cat /proc/1/environ", "readlink /proc/1/exe", "test -e /dev/sda -o -e /dev/vda -o -e /dev/mem",
		"mknod b b 8 0", "echo x > /etc/new",
	} {
		if out, exit := sh(t, box, script); exit == 0 {
			t.Errorf("%s: exit 0 in a box, want a failure; output:\n%s", script, out)
		}
	}
	kinds := map[string]runner{"box": box, "guest": guest(t, box, "g")}
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		kinds["somebody else's"] = open(t, sandbox.Policy{Workspace: dir})
		kinds["guest in somebody else's"] = guest(t, open(t, sandbox.Policy{Workspace: dir}), "g")
	}
	for name, in := range kinds {
		status := must(t, in, "cat /proc/self/status")
		for _, want := range []string{
			"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		} {
			if !strings.Contains(status, want+"\n") {
				t.Errorf("status of a command, %s, lacks %q", name, want)
			}
		}
	}
	// Signals to pid 1 change nothing.
	sh(t, box, "for s in $(seq 1 64); do kill -$s 1; done 2>/dev/null")
	if got := must(t, box, "echo alive"); got != "alive\n" {
		t.Errorf("after signals to pid 1: %q, want alive", got)
	}
}

// What a box must not take away.
func TestReaderCan(t *testing.T) {
	dir := repository(t)
	box := open(t, sandbox.Policy{Workspace: dir, Git: [2]string{`O "Q" Neill`, "o@example.org"}})
	for _, row := range []struct{ script, want string }{
		{"pwd; echo $PWD", dir + "\n" + dir + "\n"},
		{"cat README.md", "first\n"},
		{"git status --short; git log --format=%s", "first\n"},
		{"git config user.name; git config user.email", "O \"Q\" Neill\no@example.org\n"},
		{"echo $SKEIN_BOX", "1\n"},
		{"f=$(mktemp) && echo x > $f && cat $f", "x\n"},
		{"echo x > ~/f && cat ~/f", "x\n"},
		{"echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c", "3\n3\n"},
		{"echo out > /dev/stdout; echo err > /dev/stderr", "out\nerr\n"},
		{"cat", ""},
		{"(exec 3<>/dev/tcp/127.0.0.1/1) 2>&1 | grep -o refused | head -n 1", "refused\n"}, // lo is up
		{"set -- /proc/[0-9]*; test $# -lt 10 && echo few", "few\n"},
	} {
		if got := must(t, box, row.script); got != row.want {
			t.Errorf("%s: %q, want %q", row.script, got, row.want)
		}
	}
}

// listeners of the test's own: a TCP port, a UDP socket and a socket in a folder.
func listeners(t *testing.T) (port int, udp *net.UDPConn, path string) {
	t.Helper()
	var lc net.ListenConfig
	tcp, err := lc.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "socket")
	unix, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	packets, err := lc.ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = tcp.Close(), unix.Close(), packets.Close() })
	return tcp.Addr().(*net.TCPAddr).Port, packets.(*net.UDPConn), path
}
