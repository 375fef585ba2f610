package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A target is a kind of machine that a filter is made for.
type target struct {
	audit  uint32 // as the kernel calls it
	number func(call) int
}

// targets are the machines that boxes exist on, by the name Go has for them.
var targets = map[string]target{
	"amd64": {unix.AUDIT_ARCH_X86_64, func(c call) int { return c.amd64 }},
	"arm64": {unix.AUDIT_ARCH_AARCH64, func(c call) int { return c.arm64 }},
}

// A call is a system call and its number on each kind of machine.
type call struct {
	name         string
	amd64, arm64 int // absent where there is no such call
}

const absent = -1

// Calls whose arguments decide.
var (
	callClone      = call{"clone", 56, 220}
	callSocket     = call{"socket", 41, 198}
	callSocketpair = call{"socketpair", 53, 199}
	callIoctl      = call{"ioctl", 16, 29}
	callOpen       = call{"open", 2, absent}
	callOpenat     = call{"openat", 257, 56}
	callCreat      = call{"creat", 85, absent}
	callMknod      = call{"mknod", 133, absent}
	callMknodat    = call{"mknodat", 259, 33}
	callChmod      = call{"chmod", 90, absent}
	callFchmod     = call{"fchmod", 91, 52}
	callFchmodat   = call{"fchmodat", 268, 53}
	callFchmodat2  = call{"fchmodat2", 452, 452}
	callPrlimit    = call{"prlimit64", 302, 261}
	callSetrlimit  = call{"setrlimit", 160, 164}
	callPrctl      = call{"prctl", 157, 167}
	callFallocate  = call{"fallocate", 285, 47}
	callFcntl      = call{"fcntl", 72, 25}
)

// missing are calls that the kernel seems not to have: programs then do without.
var missing = []call{
	{"clone3", 435, 435},  // its flags lie in memory, where no filter sees them
	{"openat2", 437, 437}, // as with clone3
	{"io_uring_setup", 425, 425},
	{"io_uring_enter", 426, 426},
	{"io_uring_register", 427, 427},
	{"memfd_secret", 447, 447}, // memory that no process is shown to have
}

// denied are calls that no command has a right to make. Most ask for a capability, which
// commands do not have: the filter is there for the day on which that is not enough, and
// keeps the code behind them out of reach.
var denied = []call{
	// Another view of files.
	{"mount", 165, 40},
	{"umount2", 166, 39},
	{"pivot_root", 155, 41},
	{"chroot", 161, 51},
	{"move_mount", 429, 429},
	{"open_tree", 428, 428},
	{"open_tree_attr", 467, 467},
	{"mount_setattr", 442, 442},
	{"fsopen", 430, 430},
	{"fsconfig", 431, 431},
	{"fsmount", 432, 432},
	{"fspick", 433, 433},
	{"open_by_handle_at", 304, 265},
	{"fanotify_init", 300, 262},
	// Other namespaces.
	{"unshare", 272, 97},
	{"setns", 308, 268},
	// Other processes.
	{"ptrace", 101, 117},
	{"process_vm_readv", 310, 270},
	{"process_vm_writev", 311, 271},
	{"process_madvise", 440, 440},
	{"kcmp", 312, 272},
	{"pidfd_getfd", 438, 438},
	// Parts of the kernel that were often the way out.
	{"keyctl", 250, 219},
	{"add_key", 248, 217},
	{"request_key", 249, 218},
	{"bpf", 321, 280},
	{"perf_event_open", 298, 241},
	{"userfaultfd", 323, 282},
	{"lookup_dcookie", 212, 18},
	{"modify_ldt", 154, absent},
	{"uselib", 134, absent},
	{"nfsservctl", 180, 42},
	{"syslog", 103, 116},
	{"vhangup", 153, 58},
	// The machine itself.
	{"kexec_load", 246, 104},
	{"kexec_file_load", 320, 294},
	{"reboot", 169, 142},
	{"init_module", 175, 105},
	{"finit_module", 313, 273},
	{"delete_module", 176, 106},
	{"swapon", 167, 224},
	{"swapoff", 168, 225},
	{"acct", 163, 89},
	{"quotactl", 179, 60},
	{"quotactl_fd", 443, 443},
	{"settimeofday", 164, 170},
	{"clock_settime", 227, 112},
	{"clock_adjtime", 305, 266},
	{"adjtimex", 159, 171},
	{"sethostname", 170, 161},
	{"setdomainname", 171, 162},
	{"iopl", 172, absent},
	{"ioperm", 173, absent},
}

// anyNewNamespace are the flags of clone that make a namespace. The one for time is not
// among them: clone reads its bit as part of a signal's number.
const anyNewNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// What ioctl knows of fallocate, by the names that linux/falloc.h has for it.
const (
	ioctlReserve   = 0x40305828 // FS_IOC_RESVSP
	ioctlReserve64 = 0x4030582a // FS_IOC_RESVSP64
	ioctlZeroRange = 0x40305839 // FS_IOC_ZERO_RANGE
)

// setDelegation is what fcntl has besides leases from Linux 6.19 on.
const setDelegation = 0x410 // F_SETDELEG

// tmpfileBit is what O_TMPFILE has besides O_DIRECTORY.
const tmpfileBit = 0o20000000

// kindOfSocket masks the type of a socket; the rest of the argument are flags.
const kindOfSocket = 0xf

// x32Bit marks the calls of the x32 ABI, which has numbers of its own on amd64.
const x32Bit = 0x40000000

// filter is the seccomp program of commands, as the kernel reads it. It is the same for every
// policy. A machine that it does not know has no box.
func filter(arch string) ([]byte, error) {
	program, err := assemble(arch)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	var text []byte
	for _, r := range raw {
		text = binary.NativeEndian.AppendUint16(text, r.Op)
		text = append(text, r.Jt, r.Jf)
		text = binary.NativeEndian.AppendUint32(text, r.K)
	}
	return text, nil
}

// A code is a part of the program.
type code []bpf.Instruction

// assemble writes the program. Each rule is a block of its own that is skipped for other
// calls. Those of calls that are made often come first; for calls that are always allowed
// the kernel remembers the answer and runs nothing.
func assemble(arch string) (code, error) {
	t, ok := targets[arch]
	if !ok {
		return nil, fmt.Errorf("no filter of system calls for %s", arch)
	}
	program := t.begin()
	// A program left behind with these bits would run for others as the user who works here.
	noSetID := func(mode uint32) code {
		return slices.Concat(load(argument(mode)), unless(bpf.JumpBitsNotSet, unix.S_ISUID|unix.S_ISGID, deny(unix.EPERM)))
	}
	// Without one of these flags nothing is made, and the mode is whatever lay there.
	made := func(flags, mode uint32) code {
		return slices.Concat(load(argument(flags)), unless(bpf.JumpBitsNotSet, unix.O_CREAT|tmpfileBit, noSetID(mode)))
	}
	// By this limit the init tells commands apart, see boxinit.
	noTag := func(resource uint32) code {
		return append(load(argument(resource)), denyIf(unix.EPERM, unix.RLIMIT_MSGQUEUE)...)
	}
	families := allowOnly(0, unix.EAFNOSUPPORT, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6)
	// Asking for a kind that few use has the kernel load code for it.
	kinds := slices.Concat(
		load(argument(0)), unless(bpf.JumpEqual, unix.AF_UNIX, ofKind(unix.SOCK_STREAM, unix.SOCK_DGRAM)),
		ofKind(unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET),
	)
	program = t.add(program, []rule{
		{callOpenat, made(2, 3)},
		{callOpen, made(1, 2)},
		{callClone, slices.Concat(load(argument(0)), unless(bpf.JumpBitsNotSet, anyNewNamespace, deny(unix.EPERM)))},
		{callIoctl, slices.Concat(
			load(argument(1)), denyIf(unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX),
			denyIf(unix.EOPNOTSUPP, ioctlReserve, ioctlReserve64, ioctlZeroRange),
		)},
		// It takes room on the disk without writing, which is what is counted, and beyond the
		// largest size of a file. Programs and the C library write where a file system has none.
		// What gives room back may be asked for.
		{callFallocate, slices.Concat(
			load(argument(1)), oneOf(unix.EOPNOTSUPP, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_COLLAPSE_RANGE),
		)},
		// Whoever opens a file that has a lease, outside of the box too, waits until who took it gives
		// it up, 45 seconds if need be. It may be taken of any file of one's own that can be read.
		{callFcntl, append(load(argument(1)), denyIf(unix.EPERM, unix.F_SETLEASE, setDelegation)...)},
		{callSocket, slices.Concat(
			families, kinds,
			// Programs that try MPTCP first are told that there is none, and take TCP.
			allowOnly(2, unix.EPROTONOSUPPORT, 0, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6),
		)},
		{callSocketpair, slices.Concat(families, kinds)},
		// Limits may be read, those of others too, and only one's own may be set.
		{callPrlimit, slices.Concat(
			load(argument(2)), unless(bpf.JumpNotEqual, 0, slices.Concat(
				load(argument(2)+4), unless(bpf.JumpNotEqual, 0, allow),
			)),
			load(argument(0)), unless(bpf.JumpEqual, 0, deny(unix.EPERM)),
			noTag(1),
		)},
		{callSetrlimit, noTag(0)},
		// What a closed process writes to disk could not be counted.
		{callPrctl, slices.Concat(
			load(argument(0)), unless(bpf.JumpNotEqual, unix.PR_SET_DUMPABLE, slices.Concat(load(argument(1)), denyIf(unix.EPERM, 0))),
		)},
		{callCreat, noSetID(1)},
		{callMknod, noSetID(1)},
		{callMknodat, noSetID(2)},
		{callChmod, noSetID(1)},
		{callFchmod, noSetID(1)},
		{callFchmodat, noSetID(2)},
		{callFchmodat2, noSetID(2)},
	})
	for _, c := range missing {
		program = append(program, when(t.number(c), deny(unix.ENOSYS))...)
	}
	for _, c := range denied {
		if n := t.number(c); n != absent {
			program = append(program, when(n, deny(unix.EPERM))...)
		}
	}
	return append(program, allow...), nil
}

// A rule is what is asked of the arguments of a call. What the body does not deny is allowed.
type rule struct {
	call call
	body code
}

// begin is how every program begins. Calls of another ABI have other numbers: none is let
// through.
func (t target) begin() code {
	return slices.Concat(
		load(offArch), unless(bpf.JumpEqual, t.audit, deny(unix.ENOSYS)),
		load(offNumber), unless(bpf.JumpLessThan, x32Bit, deny(unix.ENOSYS)),
	)
}

func (t target) add(program code, rules []rule) code {
	for _, r := range rules {
		if n := t.number(r.call); n != absent {
			program = append(program, when(n, append(r.body, allow...))...)
		}
	}
	return program
}

// Where the kernel's description of a call has what.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// argument is where the low half of an argument is, on machines that keep it first: of an
// int the kernel reads no more.
func argument(i uint32) uint32 { return offArgs + 8*i }

func load(off uint32) code { return code{bpf.LoadAbsolute{Off: off, Size: 4}} }

var allow = code{bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}}

func deny(errno unix.Errno) code {
	return code{bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}}
}

// unless skips the body if what is loaded compares so.
func unless(cond bpf.JumpTest, value uint32, body code) code {
	return append(code{bpf.JumpIf{Cond: cond, Val: value, SkipTrue: uint8(len(body))}}, body...)
}

// when skips a body for other calls than that number, which is what is loaded. A body ends
// with an answer: whatever it loads, what follows finds the number.
func when(number int, body code) code { return unless(bpf.JumpNotEqual, uint32(number), body) }

// denyIf denies when what is loaded is one of the values.
func denyIf(errno unix.Errno, values ...uint32) (list code) {
	for _, v := range values {
		list = append(list, unless(bpf.JumpNotEqual, v, deny(errno))...)
	}
	return list
}

// allowOnly denies unless an argument is one of the values.
func allowOnly(arg uint32, errno unix.Errno, values ...uint32) code {
	return append(load(argument(arg)), oneOf(errno, values...)...)
}

// ofKind denies a socket unless it is of one of these kinds.
func ofKind(kinds ...uint32) code {
	return slices.Concat(
		load(argument(1)), code{bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kindOfSocket}}, oneOf(unix.EPERM, kinds...),
	)
}

// oneOf denies unless what is loaded is one of the values.
func oneOf(errno unix.Errno, values ...uint32) (list code) {
	for i, v := range values {
		list = append(list, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(list, deny(errno)...)
}
