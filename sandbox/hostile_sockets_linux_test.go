package sandbox_test

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Nothing that a command sends arrives anywhere.
func TestHostileSockets(t *testing.T) {
	own := ""
	if ownAddress() == "" {
		own = "this machine has no network but the loopback device"
	}
	hostile(t, []attempt{
		{name: "TCP", script: "echo x > /dev/tcp/127.0.0.1/$TCP", arrives: true},
		{name: "TCP by program", script: helper + "=dial $SELF tcp4 127.0.0.1:$TCP", arrives: true},
		{name: "TCP to any", script: helper + "=dial $SELF tcp4 0.0.0.0:$TCP", arrives: true},
		{name: "TCP to the machine's address", script: helper + "=dial $SELF tcp4 $OWN:$TCP", arrives: true, absent: own},
		{name: "TCP over IPv6", script: helper + "=dial $SELF tcp6 [::1]:$TCP6", arrives: true, absent: noIPv6()},
		{name: "multipath TCP", script: "try connect 262 $TCP", arrives: true, absent: noSocket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{name: "UDP", script: helper + "=dial $SELF udp4 127.0.0.1:$UDP", arrives: true},
		{name: "UDP to the machine's address", script: helper + "=dial $SELF udp4 $OWN:$UDP", arrives: true, absent: own},
		{name: "UDP to all", script: "try broadcast $UDP", control: helper + "=dial $SELF udp4 127.0.0.1:$UDP", arrives: true},
		{name: "raw", want: "EPERM", script: "try socket 2 3 1", root: caps},
		{name: "raw over IPv6", want: "EPERM", script: "try socket 10 3 58", root: caps, absent: noIPv6()},
		{name: "packet", want: "EAFNOSUPPORT", script: "try socket 17 3 0", root: caps},
		{name: "netlink", want: "EAFNOSUPPORT", script: "try socket 16 3 0"},
		{name: "audit", want: "EAFNOSUPPORT", script: "try socket 16 3 9"},
		{name: "virtual machine's host", want: "EAFNOSUPPORT", script: "try socket 40 1 0", absent: noSocket(40, unix.SOCK_STREAM, 0)},
		{name: "abstract", script: helper + "=dial $SELF unix @$ABSTRACT", arrives: true},
		{name: "abstract datagram", script: helper + "=dial $SELF unixgram @$ABSTRACT.gram", arrives: true},
		{name: "socket elsewhere", script: helper + "=dial $SELF unix $SOCKETS/out/socket", arrives: true},
		{name: "socket for datagrams elsewhere", script: helper + "=dial $SELF unixgram $SOCKETS/out/gram", arrives: true},
		{name: "socket for packets elsewhere", script: helper + "=dial $SELF unixpacket $SOCKETS/out/packet", arrives: true},
		{name: "socket by link", script: "d=$(mktemp -d) && ln -s $SOCKETS/out/socket $d/s && " + helper + "=dial $SELF unix $d/s", arrives: true},
		{name: "socket by the root of a process", script: "for p in self 1 $PPID; do " + helper + "=dial $SELF unix /proc/$p/root$SOCKETS/out/socket; done", arrives: true},
		{name: "socket by its folder's handle", script: "cd $SOCKETS/out; " + helper + "=dial $SELF unix socket", arrives: true},
		{name: "socket in the workspace", script: helper + "=dial $SELF unix $SOCKETS/work/socket", arrives: true},
		{name: "socket in the home folder", script: helper + "=dial $SELF unix $SOCKETS/home/socket", arrives: true},
		{name: "agent's socket", script: helper + "=dial $SELF unix $SOCKETS/agent/ssh", arrives: true},
		{name: "Docker's socket", script: helper + "=dial $SELF unix $SOCKETS/docker/socket", arrives: true},
		{name: "another socket of Docker's", script: helper + "=dial $SELF unix $SOCKETS/home/.docker/run/docker.sock", arrives: true},
	}, planSockets)
}

// planSockets listens at all kinds of addresses.
func planSockets(t *testing.T, w *world) {
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(w.root, "agent/ssh"))
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(w.root, "docker/socket"))
	var fds []int
	listen := func(kind int, at unix.Sockaddr) int {
		family := unix.AF_UNIX
		switch at.(type) {
		case *unix.SockaddrInet4:
			family = unix.AF_INET
		case *unix.SockaddrInet6:
			family = unix.AF_INET6
		}
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			err = unix.Bind(fd, at)
		}
		if err == nil && kind != unix.SOCK_DGRAM {
			err = unix.Listen(fd, 64)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		fds = append(fds, fd)
		bound, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		switch bound := bound.(type) {
		case *unix.SockaddrInet4:
			return bound.Port
		case *unix.SockaddrInet6:
			return bound.Port
		}
		return 0
	}
	w.more = append(w.more, "SELF="+w.program, "SOCKETS="+w.root, "OWN="+ownAddress(),
		fmt.Sprintf("TCP=%d", listen(unix.SOCK_STREAM, &unix.SockaddrInet4{})), fmt.Sprintf("UDP=%d", listen(unix.SOCK_DGRAM, &unix.SockaddrInet4{})))
	if noIPv6() == "" {
		w.more = append(w.more, fmt.Sprintf("TCP6=%d", listen(unix.SOCK_STREAM, &unix.SockaddrInet6{})))
	}
	abstract := "skein-test-" + filepath.Base(w.root)
	w.more = append(w.more, "ABSTRACT="+abstract)
	listen(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + abstract})
	listen(unix.SOCK_DGRAM, &unix.SockaddrUnix{Name: "@" + abstract + ".gram"})
	for path, kind := range map[string]int{
		"out/socket": unix.SOCK_STREAM, "out/gram": unix.SOCK_DGRAM, "out/packet": unix.SOCK_SEQPACKET, "work/socket": unix.SOCK_STREAM,
		"home/socket": unix.SOCK_STREAM, "home/.docker/run/docker.sock": unix.SOCK_STREAM, "agent/ssh": unix.SOCK_STREAM, "docker/socket": unix.SOCK_STREAM,
	} {
		path = filepath.Join(w.root, path)
		write(t, filepath.Join(filepath.Dir(path), "beside"), "")
		listen(kind, &unix.SockaddrUnix{Name: path})
	}
	w.arrived = func() (n int) {
		for _, fd := range fds {
			for arrival(fd) {
				n++
			}
		}
		return n
	}
}

// arrival takes one connection or message, if there is one. What was sent on this machine
// has arrived when it was sent.
func arrival(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return false
	}
	if kind == unix.SOCK_DGRAM {
		_, _, err := unix.Recvfrom(fd, make([]byte, 64), 0)
		return err == nil
	}
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err == nil {
		_ = unix.Close(conn)
	}
	return err == nil
}

// ownAddress is one of this machine's addresses besides loopback, "" for none.
func ownAddress() string {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, a := range list {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.IsGlobalUnicast() && !strings.Contains(ip.String(), ":") {
			return ip.String()
		}
	}
	return ""
}

func noIPv6() string {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet6{Addr: [16]byte{15: 1}})
		_ = unix.Close(fd)
	}
	if err != nil {
		return "this machine has no IPv6: " + err.Error()
	}
	return ""
}

// noSocket says so if this machine knows no such sockets.
func noSocket(family, kind, protocol int) string {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return fmt.Sprintf("this machine has no sockets of family %d and protocol %d: %v", family, protocol, err)
	}
	_ = unix.Close(fd)
	return ""
}
