package boxinit

// A Kind says what is attached at a [Mount]'s target.
type Kind string

// The kinds of mounts.
const (
	Bind    Kind = "bind"    // Source and what is mounted below it
	Device  Kind = "device"  // Source, a device file that may be opened
	Tmpfs   Kind = "tmpfs"   // an empty file system in memory
	Overlay Kind = "overlay" // a throw-away layer over Source; where that cannot be, what stands at Target, or an empty file system
	Veil    Kind = "veil"    // Source without Names, whatever comes to stand there; all of Source where that cannot be
	Layers  Kind = "layers"  // Source with Above over it; what is changed goes to Upper
	Hide    Kind = "hide"    // nothing: an empty folder or file, whatever stands there; absent targets stay absent
	Proc    Kind = "proc"    // the processes of this box
	Pts     Kind = "pts"     // terminals of this box; left out where that cannot be
)

// A Mount is one thing attached to the tree of a box.
type Mount struct {
	Kind     Kind
	Source   string // host path, resolved
	Target   string // path in the box, resolved; made if absent, in file systems of the box only
	Writable bool
	Optional bool     // left out if Source is gone, or a link, when it is taken; an Overlay elsewhere is empty
	Mode     uint32   // of the root of a Tmpfs; 0 = 0755
	Size     string   // of a Tmpfs, as the kernel reads it; "" = half of the memory
	Mine     bool     // the root of a Tmpfs, Bind or Overlay belongs to the commands' user
	Above    []string // of Layers, the topmost first
	Upper    string   // of writable Layers; "" = in memory, thrown away
	Work     string   // beside Upper
	Names    []string // of a Veil, relative to Source, sorted
	Scopes   []string // of writable Layers: folders that alone are writable, relative; "." = all of it
}

// A File is written while the box is built.
type File struct {
	Path, Text string
}

// A Link is a symbolic link made while the box is built, unless something stands at Path.
type Link struct {
	Path, Target string
}

// A Spec is all an init needs to know to build its box.
type Spec struct {
	Mounts []Mount // attached in this order: a folder before what is below it
	Links  []Link
	Files  []File
	Memory string // size of the memory that all throw-away layers share; "" = half of it
	View   string // where the workspace is
	UID    int    // user of the commands, as on the host
	GID    int
	Switch bool    // the init is root and must become UID
	Filter []byte  // seccomp program for commands, as the kernel reads it
	Own    []Mount // of Kind Tmpfs: what each guest has of its own at such a place
	Limits Limits
	Net    bool // the network is the host's
}

// Limits bound what commands use, 0 for no limit. See [sandbox.Limits].
type Limits struct {
	Memory, Disk, FileSize int64
	Processes              int
}

// A Request starts a command or ends one. With the first come the descriptors of the
// command's output, its errors and, if it has one, its input.
type Request struct {
	ID    int64
	Kill  bool     // end command ID and all its descendants
	Self  bool     // the program is the init's own; Argv follows argv[0]
	Argv  []string // looked up on PATH of Env
	Dir   string   // absolute
	Guest string   // whose command it is; "" = the box's own
	Leave bool     // nothing but that the guest is gone; no reply
	Env   []string
}

// What a policy can ask for in vain.
const (
	FaultNet  = "net"  // the network, where abstract sockets cannot be held
	FaultPath = "path" // a workspace that its user cannot enter
	FaultGone = "gone" // something that is gone, or a link, since it was found
)

// A Reply answers a request to start a command, once when it has started and once when the
// command and all its descendants have ended; the first reply, with ID 0, tells how building the box went.
type Reply struct {
	ID      int64
	Started bool   // the command runs, another reply follows
	Exit    int    // exit code, 128 + signal when killed by one
	Error   string // why nothing was started; "" when it was
	Errno   int    // the kernel's answer behind Error; 0 = none
	Fault   string // what of the policy Error is about, if it is: one of those above
	Killed  string // the limit for which the command was ended
	Held    *Held  // in the first reply
}

// Held is what the init could put on the box; what it had to is not told.
type Held struct {
	Landlock  int  // version; 0 = none
	Processes bool // the kernel bounds them
}
