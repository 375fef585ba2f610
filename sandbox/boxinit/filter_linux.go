package boxinit

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// install puts a seccomp program on the calling thread and whatever it executes.
func install(program []byte) error {
	if len(program) == 0 {
		return fmt.Errorf("filter system calls: the policy has no filter: %w", unix.EINVAL)
	}
	p := unix.SockFprog{
		Len:    uint16(uintptr(len(program)) / unsafe.Sizeof(unix.SockFilter{})),
		Filter: (*unix.SockFilter)(unsafe.Pointer(unsafe.SliceData(program))),
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
