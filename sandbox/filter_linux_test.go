package sandbox

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// numbers reads the numbers of system calls on a kind of machine from another source.
func numbers(t *testing.T, arch string) map[string]int {
	t.Helper()
	if _, err := os.Stat("filter_linux.go"); err != nil {
		t.Skip("this is the run without the sources")
	}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]int{}
	for _, m := range regexp.MustCompile(`SYS_(\w+)\s+=\s+(\d+)`).FindAllStringSubmatch(string(text), -1) {
		if list[strings.ToLower(m[1])], err = strconv.Atoi(m[2]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// A machine is a filter with the numbers of the calls on its kind of machine.
type machine struct {
	vm      *bpf.VM
	audit   uint32
	numbers map[string]int
}

func newMachine(t *testing.T, arch string) machine {
	t.Helper()
	program, err := assemble(arch)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return machine{vm, targets[arch].audit, numbers(t, arch)}
}

// answer is what the filter says to a call: 0 if it may go on, else the error.
func (m machine) answer(t *testing.T, audit, number uint32, args ...uint64) unix.Errno {
	t.Helper()
	// The interpreter reads numbers as they come from a network.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], audit)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+8*i+4:], uint32(a>>32))
	}
	got, err := m.vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	if got == unix.SECCOMP_RET_ALLOW {
		return 0
	}
	if got&^0xffff != unix.SECCOMP_RET_ERRNO {
		t.Fatalf("the filter answers %#x to call %d %x, want an error number", got, number, args)
	}
	return unix.Errno(got & 0xffff)
}

// A verdict is a call and what the filter says to it.
type verdict struct {
	name string
	args []uint64
	want unix.Errno
}

// high is a bit that the kernel ignores in an int.
const high = 1 << 32

// socketDCCP is SOCK_DCCP of linux/net.h.
const socketDCCP = 6

func TestFilter(t *testing.T) {
	const (
		thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS
		flags  = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
		some   = 0x7fff_0000_0000 // an address without a low half
		above  = 0x1000           // and one without a high one
	)
	rows := []verdict{
		{"read", nil, 0},
		{"openat", nil, 0},
		{"execve", nil, 0},
		{"futex", nil, 0},
		{"mkdirat", nil, 0},
		{"fchmodat", nil, 0},
		{"kill", nil, 0},
		{"memfd_create", nil, 0},
		{"seccomp", nil, 0},
		{"landlock_restrict_self", nil, 0},
		{"mknodat", nil, 0},
		{"fcntl", []uint64{0, unix.F_SETLK}, 0},
		{"fcntl", []uint64{0, unix.F_GETLEASE}, 0},
		{"fcntl", []uint64{0, unix.F_SETLEASE | high}, unix.EPERM},
		{"fcntl", []uint64{0, setDelegation}, unix.EPERM},
		{"clone", []uint64{thread}, 0},
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | uint64(unix.SIGCHLD)}, 0},
		{"clone", []uint64{thread | unix.CLONE_NEWUSER}, unix.EPERM},
		{"clone", []uint64{unix.CLONE_NEWNS | uint64(unix.SIGCHLD)}, unix.EPERM},
		{"clone", []uint64{unix.CLONE_NEWPID | high}, unix.EPERM},
		{"clone3", nil, unix.ENOSYS},
		{"io_uring_setup", nil, unix.ENOSYS},
		{"memfd_secret", nil, unix.ENOSYS},
		{"ioctl", []uint64{0, unix.TCGETS}, 0},
		{"ioctl", []uint64{0, unix.TIOCSTI}, unix.EPERM},
		{"ioctl", []uint64{0, unix.TIOCSTI | high}, unix.EPERM},
		{"ioctl", []uint64{0, unix.TIOCLINUX}, unix.EPERM},
		{"ioctl", []uint64{0, ioctlReserve}, unix.EOPNOTSUPP},
		{"ioctl", []uint64{0, ioctlReserve64 | high}, unix.EOPNOTSUPP},
		{"ioctl", []uint64{0, ioctlZeroRange}, unix.EOPNOTSUPP},
		{"fallocate", nil, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_KEEP_SIZE}, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_KEEP_SIZE | high}, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_ZERO_RANGE}, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_INSERT_RANGE}, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_UNSHARE_RANGE}, unix.EOPNOTSUPP},
		{"fallocate", []uint64{3, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE}, 0},
		{"fallocate", []uint64{3, unix.FALLOC_FL_COLLAPSE_RANGE}, 0},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM | flags, 0}, 0},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, 0},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | flags, unix.IPPROTO_TCP}, 0},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM | flags, 0}, 0},
		{"socket", []uint64{unix.AF_INET | high, unix.SOCK_STREAM, 0}, 0},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | flags, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP | high}, unix.EPROTONOSUPPORT},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_RAW | flags, unix.IPPROTO_ICMP}, unix.EPERM},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_RAW | high, unix.IPPROTO_ICMP}, unix.EPERM},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_PACKET, 0}, unix.EPERM},
		{"socket", []uint64{unix.AF_PACKET, unix.SOCK_DGRAM, 0}, unix.EAFNOSUPPORT},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, unix.EAFNOSUPPORT},
		{"socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, unix.EAFNOSUPPORT},
		{"socket", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, unix.EAFNOSUPPORT},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_SEQPACKET, 0}, unix.EPERM},
		{"socket", []uint64{unix.AF_INET6, socketDCCP, 0}, unix.EPERM},
		{"socket", []uint64{unix.AF_INET6 | high, unix.SOCK_RDM | flags, 0}, unix.EPERM},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_RAW, 0}, unix.EPERM},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_STREAM | flags, 0}, 0},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, 0},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_RDM, 0}, unix.EPERM},
		{"socketpair", []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, unix.EAFNOSUPPORT},
		{"prlimit64", []uint64{0, unix.RLIMIT_NOFILE, some, 0}, 0},
		{"prlimit64", []uint64{0, unix.RLIMIT_NOFILE, above, 0}, 0},
		{"prlimit64", []uint64{1, unix.RLIMIT_NOFILE, 0, some}, 0},
		{"prlimit64", []uint64{1, unix.RLIMIT_NOFILE, some, 0}, unix.EPERM},
		{"prlimit64", []uint64{1, unix.RLIMIT_NOFILE, above, 0}, unix.EPERM},
		{"prlimit64", []uint64{0, unix.RLIMIT_MSGQUEUE, 0, some}, 0},
		{"prlimit64", []uint64{77, unix.RLIMIT_MSGQUEUE, 0, some}, 0},
		{"prlimit64", []uint64{0, unix.RLIMIT_MSGQUEUE, some, 0}, unix.EPERM},
		{"prlimit64", []uint64{77, unix.RLIMIT_MSGQUEUE, above, 0}, unix.EPERM},
		{"prlimit64", []uint64{0, unix.RLIMIT_MSGQUEUE | high, above, 0}, unix.EPERM},
		{"setrlimit", []uint64{unix.RLIMIT_NOFILE, above}, 0},
		{"setrlimit", []uint64{unix.RLIMIT_MSGQUEUE, above}, unix.EPERM},
		{"setrlimit", []uint64{unix.RLIMIT_MSGQUEUE | high, above}, unix.EPERM},
		{"prctl", []uint64{unix.PR_SET_DUMPABLE, 1}, 0},
		{"prctl", []uint64{unix.PR_SET_DUMPABLE, 0}, unix.EPERM},
		{"prctl", []uint64{unix.PR_SET_DUMPABLE | high, 0}, unix.EPERM},
		{"prctl", []uint64{unix.PR_SET_NAME, 0}, 0},
		{"openat", []uint64{0, 0, unix.O_RDONLY, 0o4755}, 0}, // a mode that nobody reads
		{"openat", []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o755}, 0},
		{"openat", []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, unix.EPERM},
		{"openat", []uint64{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0o2755}, unix.EPERM},
		{"openat", []uint64{0, 0, unix.O_DIRECTORY, 0o2755}, 0},
		{"openat2", nil, unix.ENOSYS},
		{"fchmod", []uint64{3, 0o755}, 0},
		{"fchmod", []uint64{3, 0o4755}, unix.EPERM},
		{"fchmodat", []uint64{3, 0, 0o1777}, 0},
		{"fchmodat", []uint64{3, 0, 0o2755}, unix.EPERM},
		{"fchmodat2", []uint64{3, 0, 0o4755}, unix.EPERM},
		{"mknodat", []uint64{3, 0, unix.S_IFREG | 0o4755}, unix.EPERM},
		{"setpriority", []uint64{unix.PRIO_PROCESS, 77, 5}, 0}, // who may is for the kernel
		{"sched_setaffinity", []uint64{77}, 0},                 // libraries of threads name them so
	}
	for arch := range targets {
		t.Run(arch, func(t *testing.T) {
			m := newMachine(t, arch)
			for _, row := range rows {
				number, ok := m.numbers[row.name]
				if !ok {
					t.Fatalf("no number of %s", row.name)
				}
				if got := m.answer(t, m.audit, uint32(number), row.args...); got != row.want {
					t.Errorf("filter(%s %#x) = %v, want %v", row.name, row.args, got, row.want)
				}
			}
			for _, c := range denied {
				number, ok := m.numbers[c.name]
				if at := targets[arch].number(c); !ok && at != absent || ok && at != number {
					t.Errorf("%s is number %d here, want %d (there is one: %v)", c.name, at, number, ok)
				}
				if got := m.answer(t, m.audit, uint32(number)); ok && got != unix.EPERM {
					t.Errorf("filter(%s) = %v, want EPERM", c.name, got)
				}
			}
			// A call that is fine here is none by the number of another ABI.
			read := uint32(m.numbers["read"])
			if got := m.answer(t, m.audit, read|x32Bit); got != unix.ENOSYS {
				t.Errorf("filter(read of x32) = %v, want ENOSYS", got)
			}
			for _, other := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
				if got := m.answer(t, other, read); got != unix.ENOSYS {
					t.Errorf("filter(read on machine %#x) = %v, want ENOSYS", other, got)
				}
			}
		})
	}
	if _, err := filter("sparc64"); err == nil {
		t.Error("filter(sparc64) = nil, want an error: no filter, no box")
	}
}
