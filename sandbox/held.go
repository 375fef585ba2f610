package sandbox

// Held tells by what a box is held besides its namespaces and mounts, which every box has.
type Held struct {
	// Tier is "namespaces", the only one so far.
	Tier string
	// Landlock is the version of it that this kernel has: from 3 on truncating is held, from
	// 6 on abstract sockets and signals, from 9 on sockets by path. 0 is none.
	Landlock int
	// Seccomp says that system calls are filtered.
	Seccomp bool
	// Processes says that the kernel itself refuses a process beyond [Limits.Processes]: from
	// version 6.14 on, and from 5.14 on for users other than root.
	Processes bool
}
