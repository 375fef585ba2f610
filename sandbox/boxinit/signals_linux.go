package boxinit

import (
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ignoreSignals has the process live on when a command sends it a signal of which the Go runtime
// would die. The kernel does what it takes for the rest, as this is pid 1.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1),
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM)
	// With a code of the sender's own (sigqueue) the runtime takes these for faults of this
	// program. Real ones end it all the same, and what is executed begins with the defaults:
	// the runtime knows nothing of this.
	for _, s := range []unix.Signal{unix.SIGILL, unix.SIGTRAP, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS} {
		ignore(s)
	}
}

// ignore has the kernel drop a signal. [signal.Ignore] would be inherited by commands.
func ignore(s unix.Signal) {
	const ignored = 1 // SIG_IGN
	action := struct{ handler, flags, restorer, mask uint64 }{handler: ignored}
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0) // known to every kernel
}
