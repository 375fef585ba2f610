package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skein/sandbox/boxinit"
)

// socketTable lists all sockets by path of this network namespace.
const socketTable = "/proc/net/unix"

// sockets lists, from a table of the kernel's, where in the box the sockets of this machine's
// programs would be seen. To connect to one asks for no right to write to a read-only mount, so
// each is hidden. Those that are bound later are held by Landlock only, see [Held].
func sockets(table string, p Policy, view string) (paths []string, err error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, fmt.Errorf("list the sockets to be hidden: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		// Num RefCount Protocol Flags Type St Inode Path, and the path may hold spaces.
		_, path, ok := strings.Cut(line, " /")
		path, err := filepath.EvalSymlinks("/" + strings.TrimSuffix(path, "\n"))
		if !ok || err != nil {
			continue // abstract, without a name, or gone
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			paths = append(paths, seenAt(p, view, path)...)
		}
	}
	return paths, nil
}

// seenAt lists where the box shows a path of the host.
func seenAt(p Policy, view, path string) (list []string) {
	shown := p.ReadOnly
	if p.Layers == nil { // below layers nobody answers
		shown = append([]Mount{{Host: p.Workspace, Path: view}}, shown...)
	}
	for _, path := range p.Readable {
		shown = append(shown[:len(shown):len(shown)], Mount{Host: path})
	}
	for _, m := range shown {
		host, err := resolve(m.Host)
		if err != nil || !within(path, host) {
			continue
		}
		at := m.Path
		if at == "" {
			at = host
		}
		list = append(list, filepath.Join(at, strings.TrimPrefix(path, host)))
	}
	for _, own := range append(ofBox, boxinit.Home) {
		if within(path, own) {
			return list // the box has its own
		}
	}
	return append(list, path)
}

// resolvConf shows the file that says how names are found, where it is a link to what the
// box hides.
func resolvConf(file string, add func(boxinit.Mount)) {
	target, err := filepath.EvalSymlinks(file)
	if err == nil && target != file && within(target, "/run") {
		add(boxinit.Mount{Kind: boxinit.Bind, Source: target, Target: target})
	}
}
