package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"skein/sandbox/boxinit"
)

// probeFor bounds each of the two boxes of a self-test.
const probeFor = 20 * time.Second

// Examine is the self-test: it tries from inside a box what must fail there, a write, a new
// file, a chmod, a TCP and a UDP connection to the outside, and what must work, a change
// of a writable workspace. An error means that boxes here do not hold what they promise: it
// wraps [ErrNoBox] and says what went wrong. The report then ends with that.
func Examine(ctx context.Context) (r Report, err error) {
	folder, err := keepFolder(ctx)
	if err != nil {
		return r, fmt.Errorf("probe: %w", err)
	}
	defer func() { _ = folder.remove() }()
	dir := folder.path
	existing := filepath.Join(dir, "existing")
	if err := os.WriteFile(existing, []byte("as it was\n"), 0o644); err != nil {
		return r, fmt.Errorf("probe: %w", err)
	}
	out, err := outsiders(ctx)
	if err != nil {
		return r, fmt.Errorf("probe: %w", err)
	}
	defer out.close()
	targets := boxinit.Targets{Existing: existing, New: filepath.Join(dir, "new"), TCP: out.tcpPort(), UDP: out.udpPort()}

	tried, held, err := tryIn(ctx, Policy{Workspace: dir}, targets)
	if err != nil {
		return r.broken("user namespaces", err)
	}
	r.Held = held
	r.add("user namespaces", "granted")
	left := out.untouched()
	for _, t := range []struct {
		step, broken, why string
		left              error
	}{
		{"reader: change a file", "changed a file", tried.Write, nil},
		{"reader: make a file", "created a file", tried.Create, nil},
		{"reader: change a mode", "changed a file's mode", tried.Chmod, nil},
		{"reader: connect by TCP", "connected to the outside", tried.TCP, left},
		{"reader: send by UDP", "", cmp.Or(tried.UDP, "nothing arrived"), left},
	} {
		switch {
		case t.why == "":
			return r.broken(t.step, &noBox{errors.New("self-test: a command of a read-only box " + t.broken)})
		case t.left != nil:
			return r.broken(t.step, &noBox{t.left})
		}
		r.add(t.step, "refused: "+t.why)
	}
	if text, err := os.ReadFile(existing); err != nil || string(text) != "as it was\n" {
		return r.broken("reader: change a file", &noBox{errors.New("self-test: a file changed under a read-only box")})
	}

	const works = "writer: change its files"
	if tried, _, err = tryIn(ctx, Policy{Workspace: dir, Writable: true}, targets); err != nil {
		return r.broken(works, err)
	}
	if why := tried.Write + tried.Create; why != "" {
		return r.broken(works, &noBox{errors.New("self-test: a writable workspace cannot be changed: " + why)})
	}
	if text, err := os.ReadFile(existing); err != nil || string(text) != "as it was\nprobe\n" {
		return r.broken(works, &noBox{errors.New("self-test: a change in a writable workspace is lost")})
	}
	r.add(works, "works")
	return r, nil
}

// ExamineLayers tries whether boxes here can show folders as layers. An error says why not.
func ExamineLayers(ctx context.Context) error {
	folder, err := keepFolder(ctx)
	if err != nil {
		return fmt.Errorf("probe layers: %w", err)
	}
	defer func() { _ = folder.remove() }()
	dir := folder.path
	existing := filepath.Join(dir, "existing")
	if err := os.WriteFile(existing, []byte("as it was\n"), 0o644); err != nil {
		return fmt.Errorf("probe layers: %w", err)
	}
	tried, _, err := tryIn(ctx, Policy{Workspace: dir, Writable: true, Layers: &Layers{}}, boxinit.Targets{Existing: existing, New: filepath.Join(dir, "new")})
	if err != nil {
		return err
	}
	if why := tried.Write + tried.Create; why != "" {
		return &noBox{errors.New("self-test: layers cannot be changed: " + why)}
	}
	if text, err := os.ReadFile(existing); err != nil || string(text) != "as it was\n" {
		return &noBox{errors.New("self-test: a file changed under layers")}
	}
	return nil
}

// ExamineNet tries whether boxes here can have the network of the host. An error says why not:
// it wraps [ErrNoNet] where boxes without can be had.
func ExamineNet(ctx context.Context) error {
	folder, err := keepFolder(ctx)
	if err != nil {
		return fmt.Errorf("probe network: %w", err)
	}
	defer func() { _ = folder.remove() }()
	out, err := outsiders(ctx)
	if err != nil {
		return fmt.Errorf("probe network: %w", err)
	}
	defer out.close()
	t := boxinit.Targets{Existing: filepath.Join(folder.path, "none"), New: filepath.Join(folder.path, "new"), TCP: out.tcpPort(), UDP: out.udpPort()}
	tried, _, err := tryIn(ctx, Policy{Workspace: folder.path, Net: true}, t)
	if err == nil && tried.TCP != "" {
		err = &noBox{fmt.Errorf("%w: self-test: nothing outside can be connected to: %s", ErrNoNet, tried.TCP)}
	}
	return err
}

// tryIn tries the targets from inside a box of its own.
func tryIn(ctx context.Context, p Policy, t boxinit.Targets) (o boxinit.Outcome, held Held, err error) {
	box, err := Open(ctx, p)
	if err != nil {
		return o, held, err
	}
	defer func() { _ = box.Close() }()
	held = box.Held()
	text, err := json.Marshal(t)
	if err != nil {
		return o, held, err
	}
	c := Command{Argv: []string{boxinit.ArgProbe, string(text)}, Timeout: probeFor}
	out, err := box.self(ctx, c)
	if err == nil && out.Exit != 0 {
		err = fmt.Errorf("exit %d %s: %s", out.Exit, out.Killed, out.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out.Stdout, &o)
	}
	if ctx.Err() != nil {
		return o, held, fmt.Errorf("probe: %w", context.Cause(ctx))
	}
	if err != nil {
		return o, held, &noBox{fmt.Errorf("self-test: %w", err)}
	}
	return o, held, nil
}

// outside are sockets that a box must not reach.
type outsideSockets struct {
	tcp *net.TCPListener
	udp *net.UDPConn
}

func outsiders(ctx context.Context) (*outsideSockets, error) {
	var listen net.ListenConfig
	tcp, err := listen.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	udp, err := listen.ListenPacket(ctx, "udp4", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	s := &outsideSockets{tcp.(*net.TCPListener), udp.(*net.UDPConn)}
	// Without a datagram that does arrive, one that does not would prove nothing.
	if _, err := s.udp.WriteTo([]byte("control"), s.udp.LocalAddr()); err != nil {
		s.close()
		return nil, err
	}
	if err := s.received(time.Second); err != nil {
		s.close()
		return nil, fmt.Errorf("a datagram on the loopback device is lost: %w", err)
	}
	return s, nil
}

func (s *outsideSockets) tcpPort() int { return s.tcp.Addr().(*net.TCPAddr).Port }
func (s *outsideSockets) udpPort() int { return s.udp.LocalAddr().(*net.UDPAddr).Port }

func (s *outsideSockets) close() {
	_ = s.tcp.Close()
	_ = s.udp.Close()
}

func (s *outsideSockets) received(within time.Duration) error {
	if err := s.udp.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, _, err := s.udp.ReadFrom(make([]byte, 64))
	return err
}

// untouched reports whether nothing has reached the sockets. Loopback delivers at once,
// so a moment is enough.
func (s *outsideSockets) untouched() error {
	const moment = 5 * time.Millisecond
	if err := s.received(moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("self-test: a datagram left the box")
	}
	if err := s.tcp.SetDeadline(time.Now().Add(moment)); err != nil {
		return err
	}
	if conn, err := s.tcp.Accept(); err == nil {
		_ = conn.Close()
		return errors.New("self-test: a connection left the box")
	}
	return nil
}
