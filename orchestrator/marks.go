package orchestrator

import (
	"io/fs"
	"os"
	"slices"
	"sync"

	"skein/tools"
)

// marks are the files that a live reader was shown something of, as they were then. Others work
// in the same tree: what the reader says of a file that changed meanwhile may not hold.
type marks struct {
	mu   sync.Mutex
	seen map[string]fs.FileInfo // by name in the workspace's FS; of the last time
}

// see is [tools.Workspace.Seen].
func (m *marks) see(name string, info fs.FileInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]fs.FileInfo{}
	}
	m.seen[name] = info
}

// changed lists the files that are others now than those that were shown, in the order of their
// names. What a command of the reader's printed is not known here.
func (m *marks) changed(now tools.FS) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, then := range m.seen {
		if f, err := now.Open(name); err != nil || !same(f, then) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// same reports whether a file is what it was. It closes it.
func same(f fs.File, then fs.FileInfo) bool {
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	return err == nil && os.SameFile(info, then) && info.Size() == then.Size() && info.ModTime().Equal(then.ModTime())
}
