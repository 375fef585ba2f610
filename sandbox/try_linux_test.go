package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helpLinux is what programs of the tests' own do on Linux.
func helpLinux(ctx context.Context, what string, args []string) error {
	switch what {
	case "try":
		return try(args)
	case "crowd": // holds many boxes with a process in each, until it is killed
		return crowd(ctx, args)
	case "headless": // lives on without its first thread until it is killed
		loseFirstThread()
		fmt.Println("headless")
		select {}
	case "typist": // see TestHostileTerminal
		return typist(ctx, args)
	}
	return errors.New("unknown helper " + what)
}

// try makes a system call that no program at hand makes: the first argument names it.
func try(args []string) error {
	do := tries[args[0]]
	if do == nil {
		return errors.New("unknown try " + args[0])
	}
	if err := do(args[1:]); err != nil {
		return fmt.Errorf("try %v: %w", args, err)
	}
	return nil
}

// tries are the calls that the hostile suite makes.
var tries = map[string]func(args []string) error{
	// Files.
	"truncate": func(a []string) error { return unix.Truncate(a[0], 0) },
	"setxattr": func(a []string) error { return unix.Setxattr(a[0], "user.skein", []byte("x"), 0) },
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"map":      mapped,
	"bind":     func(a []string) error { return closed(net.Listen("unix", a[0])) },
	"allocate": func(a []string) error { return withFile(a[0], os.O_RDWR, allocate) },
	"reserve":  func(a []string) error { return withFile(a[0], os.O_RDWR, reserve) },
	"punch":    func(a []string) error { return withFile(a[0], os.O_RDWR, punch) },
	"flags":    func(a []string) error { return withFile(a[0], os.O_RDONLY, noDump) },
	"chmodhandle": func(a []string) error {
		return withFile(a[0], unix.O_PATH, func(f *os.File) error { return os.Chmod(handle(f), 0o600) })
	},
	"linkhandle": func(a []string) error {
		return withFile(a[0], os.O_RDONLY, func(f *os.File) error {
			return unix.Linkat(unix.AT_FDCWD, handle(f), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
		})
	},
	"tmpfile": func(a []string) error {
		f, err := os.OpenFile(a[0], unix.O_TMPFILE|os.O_RDWR, 0o600)
		return closed(f, err)
	},
	"byhandle":  byHandle,
	"inherited": inherited,

	// Sockets.
	"socket": func(a []string) error {
		n, err := numbers(a)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(n[0], n[1], n[2])
		if err != nil {
			return err
		}
		return unix.Close(fd)
	},
	"connect":   connect,
	"broadcast": broadcast,

	// Processes.
	"traceme": func([]string) error {
		return errnoOf(unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0, 0, 0))
	},
	"attach": withPID(attach),
	"seize": withPID(func(pid int) error {
		return errnoOf(unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0))
	}),
	"vmread": withPID(vmRead),
	"kcmp": withPID(func(pid int) error {
		return errnoOf(unix.RawSyscall6(unix.SYS_KCMP, uintptr(pid), uintptr(pid), 0, 0, 0, 0))
	}),
	"pidfd": withPID(func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 1, 0)
		return err
	}),
	"signal": withPID(func(pid int) error { return syscall.Kill(pid, 0) }),
	"queue":  withPID(queue),
	"stopall": func([]string) error {
		for {
			_ = unix.Kill(-1, unix.SIGSTOP)
		}
	},
	"prlimit": withPID(func(pid int) error {
		var l unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &l); err != nil {
			return err
		}
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &l, nil)
	}),
	"priority": withPID(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) }),
	// Privileges.
	"mount":  func([]string) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") },
	"umount": func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
	"pivot":  func(a []string) error { return unix.PivotRoot(a[0], a[0]) },
	"chroot": func(a []string) error { return unix.Chroot(a[0]) },
	"tree": func(a []string) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLONE)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	},
	"filesystem": func([]string) error {
		fd, err := unix.Fsopen("tmpfs", 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	},
	"attributes": func(a []string) error {
		return unix.MountSetattr(unix.AT_FDCWD, a[0], 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NOSUID})
	},
	"unshare": func(a []string) error {
		n, err := strconv.ParseUint(a[0], 0, 32)
		if err != nil {
			return err
		}
		runtime.LockOSThread()
		return unix.Unshare(int(n))
	},
	"clone": create,
	"setns": namespaceOf,
	"bpf":   bpfMap,
	"ring":  ring,
	"segment": func([]string) error {
		_, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		return err
	},
	"secretmemory": secretMemory,
	"perf":         counter,
	"addkey":       addKey,
	"session":      session,
	"userfault":    func([]string) error { return descriptorOf(unix.Syscall(unix.SYS_USERFAULTFD, userModeOnly, 0, 0)) },
	"fanotify":     func([]string) error { return descriptorOf(unix.Syscall(unix.SYS_FANOTIFY_INIT, 0, 0, 0)) },
	"hostname": func([]string) error {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return err
		}
		name, _, _ := bytes.Cut(u.Nodename[:], []byte{0})
		return unix.Sethostname(name)
	},
	"type": terminalInput,

	"affinity": withPID(func(pid int) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &set)
	}),
}

func handle(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

func withFile(path string, flags int, do func(*os.File) error) error {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

func closed(c interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

func errnoOf(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// queue sends all threads of a process every signal, as if the kernel had found a fault. Its
// error is that of the last which none of them could be sent.
func queue(pid int) (err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	const queued = -1 // SI_QUEUE
	for s := range unix.Signal(64) {
		err = unix.ESRCH
		for _, e := range entries {
			info := struct {
				signal, errno, code, _ int32
				_                      [112]byte
			}{signal: int32(s + 1), code: queued}
			thread, _ := strconv.Atoi(e.Name())
			if _, _, errno := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(thread), uintptr(s+1), uintptr(unsafe.Pointer(&info)), 0, 0); errno == 0 {
				err = nil
			}
		}
	}
	return err
}

func withPID(do func(pid int) error) func(args []string) error {
	return func(args []string) error {
		n, err := numbers(args)
		if err != nil {
			return err
		}
		return do(n[0])
	}
}

func numbers(args []string) (list []int, err error) {
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// mapped writes a file through shared memory, without write.
func mapped(a []string) error {
	return withFile(a[0], os.O_RDWR, func(f *os.File) error {
		m, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		m[0] = 'x'
		return unix.Munmap(m)
	})
}

func punch(f *os.File) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4)
}

func allocate(f *os.File) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 1<<20)
}

// reserve does the same as allocate by the call that there was before it.
func reserve(f *os.File) error {
	const reserve64 = 0x4030582a // FS_IOC_RESVSP64 of linux/falloc.h
	room := struct {
		kind, whence  int16
		start, length int64
		_             [6]int32
	}{length: 1 << 20}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), reserve64, uintptr(unsafe.Pointer(&room)))
	if errno != 0 {
		return errno
	}
	return nil
}

// noDumpFlag is FS_NODUMP_FL of linux/fs.h.
const noDumpFlag = 0x40

// noDump sets the flag of chattr that any owner may set.
func noDump(f *os.File) error {
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|noDumpFlag)
}

// byHandle opens a file by what the file system calls it, past all folders and mounts.
func byHandle(a []string) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
	if err != nil {
		return err
	}
	return withFile(a[0], os.O_RDONLY, func(f *os.File) error {
		fd, err := unix.OpenByHandleAt(int(f.Fd()), h, unix.O_WRONLY)
		if err != nil {
			return err
		}
		_, err = unix.Write(fd, []byte("x"))
		return errors.Join(err, unix.Close(fd))
	})
}

// inherited writes to every file that was left open for this process.
func inherited(a []string) error {
	n, err := numbers(a)
	if err != nil {
		return err
	}
	err = errors.New("found nothing")
	for fd := n[0]; fd < n[1]; fd++ {
		if _, e := unix.Write(fd, []byte("x")); e == nil {
			err = nil
		}
		if at, e := unix.Openat(fd, "planted", unix.O_CREAT|unix.O_WRONLY, 0o600); e == nil {
			err = unix.Close(at)
		}
	}
	return err
}

// connect takes a protocol number and a port on the loopback device.
func connect(a []string) error {
	n, err := numbers(a)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, n[0])
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(fd, &unix.SockaddrInet4{Port: n[1], Addr: [4]byte{127, 0, 0, 1}})
}

func attach(pid int) error {
	runtime.LockOSThread() // the one that attached must do the rest
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(pid)
}

// vmRead reads from the memory of a process: nothing lies at this address, and that the
// kernel says so means that it would have read.
func vmRead(pid int) error {
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 8, Len: 8}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

// broadcast sends a datagram to all on the link.
func broadcast(a []string) error {
	n, err := numbers(a)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: n[0], Addr: [4]byte{255, 255, 255, 255}})
}

// create is a clone that takes other namespaces along, and ends at once.
func create(a []string) error {
	n, err := strconv.ParseUint(a[0], 0, 32)
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"self"}, &syscall.ProcAttr{
		Env: []string{helper + "=nothing"}, Sys: &syscall.SysProcAttr{Cloneflags: uintptr(n)},
	})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// namespaceOf joins the namespace of a file. A thread that shares its folder with others
// cannot join mounts.
func namespaceOf(a []string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return withFile(a[0], os.O_RDONLY, func(f *os.File) error { return unix.Setns(int(f.Fd()), 0) })
}

// bpfMap makes the smallest map there is.
func bpfMap([]string) error {
	attr := [18]uint32{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// descriptorOf makes a call that returns a descriptor.
func descriptorOf(fd, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func secretMemory([]string) error {
	return descriptorOf(unix.Syscall(unix.SYS_MEMFD_SECRET, 0, 0, 0))
}

func ring([]string) error {
	var params [30]uint32
	return descriptorOf(unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0))
}

// counter counts what only this process does in user space, which anybody may.
func counter([]string) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func addKey([]string) error {
	_, err := unix.AddKey("user", "skein-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

func session([]string) error {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	return err
}

// userModeOnly is UFFD_USER_MODE_ONLY of linux/userfaultfd.h: what anybody may.
const userModeOnly = 1

// terminalInput pretends that somebody typed on the terminal of this process.
func terminalInput(a []string) error {
	return withFile(a[0], os.O_RDWR, func(f *os.File) error {
		for _, c := range []byte("x\n") {
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
				return errno
			}
		}
		return nil
	})
}
