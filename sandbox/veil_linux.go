package sandbox

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"skein/sandbox/boxinit"
)

// mostOfSystem bounds how many entries of the system's folders are looked at for what only
// root may read: three times what /etc of a machine with many services holds.
const mostOfSystem = 4_000

// rootsTrees are looked through for it, in this order. In others of the system lies what a
// package brought, which anybody can have.
var rootsTrees = []string{"/etc", "/usr/local/etc", "/opt"}

// onlyRoots lists what others than root may not read in the trees, folders without what is in
// them. For commands that are root this is what file modes do for everybody else. What holds
// something that the box was told to show is left out.
func onlyRoots(trees, told []string, most int) (list []string) {
	for queue := slices.Clone(trees); len(queue) > 0 && most > 0; queue = queue[1:] {
		closed, open := closedToOthers(queue[0], &most)
		list, queue = append(list, closed...), append(queue, open...)
	}
	return besides(list, told)
}

// besides takes out of a list of closed paths what the box was told to show and all below it;
// of a folder that holds such a thing it takes the rest.
func besides(closed, told []string) (list []string) {
	for _, path := range closed {
		switch {
		case slices.ContainsFunc(told, func(t string) bool { return within(path, t) }):
		case slices.ContainsFunc(told, func(t string) bool { return within(t, path) }):
			list = append(list, onlyRoots([]string{path}, told, mostOfSystem)...)
		default:
			list = append(list, path)
		}
	}
	return list
}

// closedToOthers lists the files and folders in a folder that others than root may not read, and the
// folders that they may. It asks by handle, and for no more than it needs: a box waits for this.
func closedToOthers(dir string, most *int) (closed, open []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = unix.Close(fd) }()
	names, seen := filesIn(fd)
	*most -= seen
	slices.Sort(names)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone
		}
		kind, others := st.Mode&unix.S_IFMT, st.Mode&0o007
		switch {
		case kind != unix.S_IFDIR && kind != unix.S_IFREG:
		case others&0o4 == 0, kind == unix.S_IFDIR && others&0o1 == 0:
			closed = append(closed, filepath.Join(dir, name))
		case kind == unix.S_IFDIR:
			open = append(open, filepath.Join(dir, name))
		}
	}
	return closed, open
}

// filesIn lists what may be files and folders in an open folder, and counts all that is there:
// most of /etc are links. What cannot be read shows nothing either.
func filesIn(dir int) (names []string, seen int) {
	const lengthAt, kindAt, nameAt = 16, 18, 19 // of an entry, as the kernel writes it
	var page [16 << 10]byte
	for {
		n, err := unix.ReadDirent(dir, page[:])
		if err != nil || n <= 0 {
			return names, seen
		}
		for rest := page[:n]; len(rest) > nameAt; {
			entry := rest[:min(int(binary.NativeEndian.Uint16(rest[lengthAt:])), len(rest))]
			rest = rest[len(entry):]
			name := unix.ByteSliceToString(entry[nameAt:])
			if name == "." || name == ".." {
				continue
			}
			seen++
			switch entry[kindAt] {
			case unix.DT_DIR, unix.DT_REG, unix.DT_UNKNOWN:
				names = append(names, name)
			}
		}
	}
}

// veil has what the outlook shows of the host shown without the names that lie in it, whatever
// comes to stand there. It leaves the rest to the mounts over what stands there now: what is in
// the workspace, or was named by the policy to be seen as it changes, and, for commands that
// are not root, what is root's: modes close it.
func (o outlook) veil(spec *boxinit.Spec, names []string) {
	veils := false
	for _, name := range names {
		at := nearest(spec.Mounts, name)
		if at < 0 || !o.veils(spec.Mounts[at].Target, spec.UID) || holds(spec.Mounts, name) {
			continue
		}
		m := &spec.Mounts[at]
		m.Kind, m.Names, veils = boxinit.Veil, append(m.Names, strings.TrimPrefix(name, m.Target+"/")), true
	}
	if !veils {
		return
	}
	// A layer is of one file system: what the host mounts in it has to be put back.
	var mounted []boxinit.Mount
	for _, point := range mountPoints() {
		at := nearest(spec.Mounts, point)
		denied := func(name string) bool {
			return within(point, filepath.Join(spec.Mounts[at].Target, name))
		}
		if at >= 0 && spec.Mounts[at].Kind == boxinit.Veil && !slices.ContainsFunc(spec.Mounts[at].Names, denied) {
			mounted = append(mounted, boxinit.Mount{
				Kind: boxinit.Bind, Source: point, Target: point, Optional: true, // it may lie under another one
			})
		}
	}
	spec.Mounts = append(spec.Mounts, mounted...)
	for _, m := range spec.Mounts {
		slices.Sort(m.Names) // a folder before what is in it
	}
}

// veils reports whether names in a tree of the box are worth a veil.
func (o outlook) veils(tree string, uid int) bool {
	if tree == "/sys" || slices.Contains(o.live, tree) || !slices.Contains(o.shown, tree) {
		return false
	}
	return uid == 0 || tree == "/opt" || !slices.Contains(systemPaths, tree)
}

// nearest returns the index of the mount that a path lies in, -1 if it lies in none.
func nearest(mounts []boxinit.Mount, path string) int {
	best := -1
	for i, m := range mounts {
		if target := m.Target; m.Kind != boxinit.Hide && target != path && within(path, target) && (best < 0 || len(target) > len(mounts[best].Target)) {
			best = i
		}
	}
	return best
}

// holds reports whether something is shown by name at a path or below it.
func holds(mounts []boxinit.Mount, path string) bool {
	return slices.ContainsFunc(mounts, func(m boxinit.Mount) bool { return m.Kind != boxinit.Hide && within(m.Target, path) })
}

// mountPoints lists where something is mounted on the host.
func mountPoints() (list []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil // what is mounted in a veil is then not seen
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		// ID parent device root point …
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, unescape.Replace(fields[4]))
		}
	}
	return list
}
