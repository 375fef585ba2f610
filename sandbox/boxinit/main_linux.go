package boxinit

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Main serves as init and does not return. Call it first thing in main, when [IsInit].
func Main() {
	mode := ""
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	switch mode {
	case ArgServe:
		serve(socket(ControlFD))
	case ArgProbe:
		os.Exit(probe(os.Args[2:], os.Stdout))
	case ArgFolder:
		os.Exit(folder(os.Stdin, os.Stdout))
	}
	fmt.Fprintln(os.Stderr, "skein-init: serves inside a box; skein starts it")
	os.Exit(2)
}

// newServer makes what the socket asks for: a box, and the server in it.
func newServer(control socket) (*server, error) {
	if err := closeInherited(); err != nil {
		return nil, fmt.Errorf("close inherited descriptors: %w", err)
	}
	unix.CloseOnExec(int(control))
	preferCommands()
	counts, err := os.Open("/proc/self/io")
	if err != nil {
		counts = nil // of a kernel that does not count
	}
	var spec Spec
	if _, err := control.receive(&spec); err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	s := &server{
		control: control, restraint: restraintOf(spec), limits: spec.Limits, guests: map[string]guest{},
		byPID: map[int]*command{}, byID: map[int64]*command{}, counts: counts, gone: map[uint64]int64{},
	}
	if s.held.Processes, err = limitProcesses(spec); err != nil {
		return nil, err
	}
	limitObjects(spec)
	if err := apart(func() error { return build(spec) }); err != nil {
		return nil, err
	}
	if !spec.Net {
		if err := loopbackUp(); err != nil {
			return nil, fmt.Errorf("bring the loopback device up: %w", err)
		}
	}
	if err := limitFiles(spec.Limits.FileSize); err != nil {
		return nil, err
	}
	if err := closeToOthers(); err != nil {
		return nil, err
	}
	takeTurns()
	s.own = ownOf(spec)
	if s.tags, err = newTags(); err != nil {
		return nil, err
	}
	var own guest
	own.launcher, s.held.Landlock, err = newLauncher(nothing, s.restraint)
	s.guests[""] = own
	return s, err
}

func nothing() error { return nil }

// closeInherited closes what whoever started skein left open in it: through one of these a
// command could write outside. What survived the exec is inherited; the runtime's own would not.
func closeInherited() error {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	var inherited []int
	numbered(dir, func(fd int) bool {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 && fd > ControlFD {
			inherited = append(inherited, fd)
		}
		return true
	})
	for _, fd := range inherited {
		_ = unix.Close(fd) // it is gone in any case
	}
	return nil
}

// apart runs build on a thread that has a table of descriptors of its own: what is open of the
// host there goes with it.
func apart(build func() error) (err error) {
	// The runtime opens descriptors for itself with the first file. They are for all threads.
	if root, err := os.Open("/"); err == nil {
		_ = root.Close()
	}
	done := make(chan struct{})
	go func() { // waited for below
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with this function
		if err = unix.Unshare(unix.CLONE_FILES); err == nil {
			err = build()
		}
	}()
	<-done
	return err
}

// A policyFault is a box that could be had for another policy.
type policyFault struct {
	of string // see [Reply.Fault]
	error
}

func (e *policyFault) Unwrap() error { return e.error }

func failure(id int64, err error) Reply {
	r := Reply{ID: id, Error: err.Error()}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	if fault := (*policyFault)(nil); errors.As(err, &fault) {
		r.Fault = fault.of
	}
	return r
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
