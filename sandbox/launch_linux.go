package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skein/sandbox/boxinit"
)

// initProgram is the file to start as init, see [Policy.Init].
func initProgram(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), boxinit.Name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
		return beside, nil
	}
	return self, nil
}

// namespaces describes the process that becomes the init.
func namespaces(net bool) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		Setsid:     true, // an interrupt at the terminal is ours to handle
	}
	if !net {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Without these an exec by an ordinary user loses what building the box needs.
		attr.AmbientCaps = []uintptr{
			unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_RESOURCE,
			unix.CAP_WAKE_ALARM, // which the init keeps
		}
		return attr, nil
	}
	// Root sees every user of the host under its own number: a tree may belong to anyone.
	// Where groups cannot be set already, as in a container without root, nobody may allow it.
	setgroups, err := os.ReadFile("/proc/self/setgroups")
	attr.GidMappingsEnableSetgroups = err != nil || string(setgroups) != "deny\n"
	if attr.UidMappings, err = identityMap("/proc/self/uid_map"); err == nil {
		attr.GidMappings, err = identityMap("/proc/self/gid_map")
	}
	return attr, err
}

// identityMap maps every number that exists here to itself.
func identityMap(path string) ([]syscall.SysProcIDMap, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var maps []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: unexpected line %q", path, line)
		}
		first, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		maps = append(maps, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
	}
	return maps, nil
}

// socketPair makes the control socket: our end and the init's.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	_ = ours.Close() // conn has its own
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// send sends the init a message, with descriptors for a command. A message that cannot be
// delivered ends the box.
func (b *Box) send(v any, files ...*os.File) error {
	frame, err := boxinit.Encode(v)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			raw, err := f.SyscallConn()
			if err != nil {
				return err
			}
			// The caller keeps the files open until send returns.
			if err := raw.Control(func(fd uintptr) { fds[i] = int(fd) }); err != nil {
				return err
			}
		}
		rights = unix.UnixRights(fds...)
	}
	b.sending.Lock()
	defer b.sending.Unlock()
	err = b.conn.SetWriteDeadline(time.Now().Add(patience))
	if err == nil {
		_, _, err = b.conn.WriteMsgUnix(frame[:boxinit.HeaderLen], rights, nil)
	}
	if err == nil {
		_, err = b.conn.Write(frame[boxinit.HeaderLen:])
	}
	if err != nil {
		return b.abandon(err) // after a part of a message no other can follow
	}
	return nil
}
