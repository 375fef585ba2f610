package boxinit

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A command is a program that was started and has not been answered for.
type command struct {
	id     int64
	pid    int
	tag    uint64 // see tags
	guest  string // whose it is; "" = the box's own
	ended  bool
	exit   int
	killed string // the limit for which it was ended
}

// A server runs the commands of a box. One goroutine, that of serve, owns it.
type server struct {
	control   socket
	held      Held
	tags      *tags
	restraint restraint
	own       own
	guests    map[string]guest // by name; "" for the box itself
	byPID     map[int]*command
	byID      map[int64]*command

	limits   Limits
	counts   *os.File         // what the kernel counts for the init; nil for nothing
	reaped   int64            // bytes that all processes wrote which the init has waited for
	gone     map[uint64]int64 // tag → bytes that processes wrote which the init had to reap
	unwaited map[int]child    // seen by the last look, with parents that do not wait for them
	makers   map[int][]uint64 // segment → tags of the commands that may have made it
	text     [4096]byte       // see read
}

// A message is a request with its descriptors.
type message struct {
	Request
	fds []int
}

// serve builds a box and runs commands in it until the control socket closes. It does not
// return.
func serve(control socket) {
	// The kernel knows a process by its first thread, which so never starts a command.
	runtime.LockOSThread()
	s, err := newServer(control)
	if err != nil {
		_ = control.send(failure(0, err)) // nobody listens when this fails
		unix.Exit(1)
	}
	s.reply(Reply{Held: &s.held}) // the rest is done while nobody waits for it
	requests := make(chan message)
	go receive(control, requests) // ends with the process, and ends it
	ignoreSignals()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	reserveThreads()

	watch := time.NewTimer(watchEvery)
	for {
		idle := len(s.byPID) == 0
		select {
		case r := <-requests:
			if s.handle(r); idle {
				watch.Reset(watchEvery)
			}
		case <-children:
			s.reap()
		case <-watch.C:
			if !idle { // a box that is crowded is not looked at all the time
				watch.Reset(max(watchEvery, 4*s.check()))
			}
		}
		s.settle()
	}
}

// receive hands requests on until the socket closes. Then the process ends at once: nothing
// here outlives it, and nothing is to be tidied.
func receive(control socket, to chan<- message) {
	for {
		var m message
		fds, err := control.receive(&m.Request)
		if err != nil {
			unix.Exit(0)
		}
		m.fds = fds
		to <- m
	}
}

// reply answers; without anyone to answer to there is nothing left to do.
func (s *server) reply(r Reply) {
	if s.control.send(r) != nil {
		unix.Exit(1)
	}
}

func (s *server) handle(m message) {
	defer func() {
		for _, fd := range m.fds {
			_ = unix.Close(fd)
		}
	}()
	switch {
	case m.Kill:
		if c := s.byID[m.ID]; c != nil {
			s.sweep(c)
		}
		return
	case m.Leave:
		if m.Guest != "" {
			s.leave(m.Guest)
		}
		return
	}
	c, err := s.start(m)
	if err != nil {
		s.reply(failure(m.ID, err))
		return
	}
	s.byPID[c.pid], s.byID[c.id] = c, c
	s.reply(Reply{ID: m.ID, Started: true})
}

func (s *server) start(m message) (*command, error) {
	if len(m.fds) < 2 || len(m.fds) > 3 || len(m.Argv) == 0 {
		return nil, fmt.Errorf("bad request: %d descriptors, %d arguments", len(m.fds), len(m.Argv))
	}
	g, err := s.guest(m.Guest)
	if err != nil {
		return nil, err
	}
	tag, err := s.tags.next()
	if err != nil {
		return nil, err
	}
	var pid int
	g.do(func() { pid, err = m.launch() })
	if err != nil {
		return nil, err
	}
	return &command{id: m.ID, pid: pid, tag: tag, guest: m.Guest}, nil
}

// launch starts the program that is asked for, on the thread of a launcher: what it may look up
// and execute is for the kernel to say.
func (m message) launch() (pid int, err error) {
	files := []uintptr{0, uintptr(m.fds[0]), uintptr(m.fds[1])}
	if len(m.fds) == 3 {
		files[0] = uintptr(m.fds[2])
	} else {
		null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer func() { _ = unix.Close(null) }()
		files[0] = uintptr(null)
	}
	argv, dir, env := m.Argv, m.Dir, m.Env
	program := "/proc/self/exe"
	if m.Self {
		argv = append([]string{Name}, argv...)
	} else if program, err = LookPath(argv[0], dir, env); err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", argv[0], err)
	}
	return pid, nil
}

// reap takes note of every child that has ended, adopted ones included.
func (s *server) reap() {
	for {
		pid, err := s.nextDead()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		tag, err := tagOf(pid)
		orphan := err == nil && s.byPID[pid] == nil
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil {
			return
		}
		delete(s.unwaited, pid)
		if before := s.reaped; s.counts != nil {
			// The kernel adds what a child wrote, with its own children, to who waits for it.
			n, _ := s.counts.ReadAt(s.text[:], 0)
			if s.reaped = max(before, bytesWritten(s.text[:max(n, 0)])); orphan {
				s.gone[tag] += s.reaped - before
			}
		}
		if c := s.byPID[pid]; c != nil {
			c.ended, c.exit = true, exitCode(status)
		}
	}
}

// nextDead is a child that has ended and is still to be waited for, or 0.
func (s *server) nextDead() (int, error) {
	var info struct {
		signal, errno, code, _ int32
		pid                    int32
		_                      [108]byte
	} // as the kernel writes it on machines of 64 bits
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return int(info.pid), err
}

func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// settle answers for the commands whose leader has ended, after ending what the leader
// left behind.
func (s *server) settle() {
	for again := true; again; {
		again = false
		for pid, c := range s.byPID {
			if !c.ended {
				continue
			}
			delete(s.byPID, pid)
			delete(s.byID, c.id)
			s.sweep(c)
			delete(s.gone, c.tag)
			s.charge(nil)
			s.reply(Reply{ID: c.id, Exit: c.exit, Killed: c.killed})
			again = true // sweeping reaps
		}
	}
}
