package boxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
	case ArgSetup:
		setup()
	case argServe:
		serve(socket(ControlFD), os.Args[2:])
	case ArgTidy:
		tidy(os.Args[2:])
	case ArgProbe:
		os.Exit(probe(os.Args[2:], os.Stdout))
	case ArgFolder:
		os.Exit(folder(os.Stdin, os.Stdout))
	}
	fmt.Fprintln(os.Stderr, "skein-init: serves inside a box; skein starts it")
	os.Exit(2)
}

// setup is stage one. It answers only when it fails; stage two says that all went well.
func setup() {
	// What is given up below is given up by this thread, and the exec makes it the only one.
	runtime.LockOSThread()
	control := socket(ControlFD)
	err := becomeServer(control)
	_ = control.send(failure(0, err)) // nobody listens when this fails
	os.Exit(1)
}

func becomeServer(control socket) error {
	// Whoever started skein may have left descriptors open in it, and through one of them
	// a command could write outside.
	if err := unix.CloseRange(ControlFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close inherited descriptors: %w", err)
	}
	var spec Spec
	if _, err := control.receive(&spec); err != nil {
		return fmt.Errorf("read the policy: %w", err)
	}
	// Opened before /proc and the program's own folder may be hidden.
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the init: %w", err)
	}
	in := inside{Limits: spec.Limits, Own: spec.Own}
	preferCommands()
	takeTurns(initSlice)
	if in.Held.Processes, err = limitProcesses(spec); err != nil {
		return err
	}
	limitObjects(spec)
	if err := build(spec); err != nil {
		return err
	}
	if !spec.Net {
		if err := loopbackUp(); err != nil {
			return fmt.Errorf("bring the loopback device up: %w", err)
		}
	}
	if err := limitFiles(spec.Limits.FileSize); err != nil {
		return err
	}
	if err := dropPrivileges(spec); err != nil {
		return err
	}
	if err := unix.Access(string(spec.View), unix.X_OK); err != nil {
		return &policyFault{FaultPath, &fs.PathError{Op: "enter", Path: string(spec.View), Err: err}}
	}
	if in.Held.Landlock, err = confine(spec); err != nil {
		return err
	}
	if spec.Net && in.Held.Landlock < scopes {
		// Abstract sockets belong to the network: buses and displays listen there.
		return &policyFault{FaultNet, fmt.Errorf("abstract sockets need landlock of version %d to be held: this kernel has %d", scopes, in.Held.Landlock)}
	}
	if err := install(spec.Filter); err != nil {
		return err
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	// One command at a time is looked after: more would take memory for each processor.
	err = syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", self), []string{Name, argServe, string(text)}, []string{"GOMAXPROCS=1"})
	return fmt.Errorf("start the init's second stage: %w", err)
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
