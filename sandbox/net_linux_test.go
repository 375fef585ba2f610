package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"skein/sandbox"
)

// dialing is a script that says hello to an address.
func dialing(program, network, address string) string {
	return fmt.Sprintf("%s=dial %s %s '%s'", helper, program, network, address)
}

func listen(t *testing.T, address string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

// With the network of the host its ports are reached, and its sockets are not.
func TestNet(t *testing.T) {
	dir := t.TempDir()
	program := self(t, dir)
	port, udp, path := listeners(t)
	abstract := "@skein-test-" + mark()
	listen(t, abstract)
	tcp := dialing(program, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	bare, off := outside(t, dir), open(t, sandbox.Policy{Workspace: dir})
	need(t, off.Held().Landlock >= 6, "this kernel does not keep abstract sockets inside")
	on := open(t, sandbox.Policy{Workspace: dir, Net: true, ReadOnly: []sandbox.Mount{{Host: filepath.Dir(path)}}})
	for _, row := range []struct {
		name, script string
		reached      bool
	}{
		{"TCP", tcp, true},
		{"UDP", dialing(program, "udp4", udp.LocalAddr().String()), true},
		{"abstract socket", dialing(program, "unix", abstract), false},
		{"socket by path", dialing(program, "unix", path), false},
	} {
		must(t, bare, row.script)
		if out, exit := sh(t, on, row.script); exit == 0 != row.reached {
			t.Errorf("%s with the network: exit %d, want reached: %v; output:\n%s", row.name, exit, row.reached, out)
		}
	}
	if out, exit := sh(t, off, tcp); exit == 0 {
		t.Errorf("TCP without the network: exit 0, want a failure; output:\n%s", out)
	}
	if got, want := must(t, on, "cat /etc/resolv.conf"), must(t, bare, "cat /etc/resolv.conf"); got != want {
		t.Errorf("/etc/resolv.conf in the box = %q, want %q", got, want)
	}
}

// A socket by path is hidden wherever the box shows it; one of the box's own is not.
func TestSocketsOfTheHost(t *testing.T) {
	work, store := t.TempDir(), t.TempDir()
	program := self(t, work)
	listen(t, filepath.Join(work, "of work"))
	listen(t, filepath.Join(store, "of-store"))
	bare := outside(t, work)
	for _, writable := range []bool{false, true} {
		box := open(t, sandbox.Policy{Workspace: work, View: "/var/log", Writable: writable, ReadOnly: []sandbox.Mount{{Host: store}, {Host: store, Path: "/var/lib"}, {Host: work}}})
		for _, row := range []struct{ inside, outside string }{
			{"of work", "of work"},
			{work + "/of work", work + "/of work"},
			{store + "/of-store", store + "/of-store"},
			{"/var/lib/of-store", store + "/of-store"},
		} {
			must(t, bare, dialing(program, "unix", row.outside))
			if out, exit := sh(t, box, dialing("./self", "unix", row.inside)); exit == 0 {
				t.Errorf("%s, writable %v: a socket of the host was reached; output:\n%s", row.inside, writable, out)
			}
		}
		if writable {
			must(t, box, callVariable+"=own ./self -test.v -test.run '^TestOwnSocket$' | grep -q 'PASS: TestOwnSocket'")
		}
	}
}

// TestOwnSocket is a helper: it talks to itself by a socket in the current folder.
func TestOwnSocket(t *testing.T) {
	if os.Getenv(callVariable) != "own" {
		t.Skip("a helper")
	}
	listen(t, "own")
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "unix", "own")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
