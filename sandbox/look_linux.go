package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// mostEntries bounds how much of a workspace is looked through when a box is opened: about
	// 5 ms.
	mostEntries = 5_000
	// mostNew bounds how much is looked through of what was changed since. Only a command that
	// makes so much costs so much: about 50 ms.
	mostNew = 50_000
	// coarse is more than a file system's clock is behind the machine's.
	coarse = 100 * time.Millisecond
)

// A fileID tells a file from all others that are there at the time. A symbolic link can be
// removed by a command and its number given to what takes its place: so its time counts, too.
type fileID struct {
	dev, ino uint64
	link     int64 // when a symbolic link was made or moved, in nanoseconds; else 0
}

// A stamp tells whether a folder is the same and holds the same names. Its time cannot be set
// by a command.
type stamp struct {
	id      fileID
	changed time.Time
}

func stampOf(info fs.FileInfo) stamp {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	id := fileID{dev: uint64(s.Dev), ino: s.Ino}
	if info.Mode()&fs.ModeSymlink != 0 {
		id.link = s.Ctim.Nano()
	}
	return stamp{id, time.Unix(s.Ctim.Unix())}
}

// manyNamed reports whether a file has hard links.
func manyNamed(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && s.Nlink > 1
}

// A look is one pass through folders of a workspace, for what [Closed] names and for git
// directories by other names.
type look struct {
	root    string
	skip    map[string]bool  // relative; what is not looked at
	was     map[string]stamp // folders that are known, and named by themselves where they changed
	left    int              // entries that may still be looked at
	folders map[string]stamp // folders that were looked through
	whole   bool             // cleared if something was not
	found   []string         // relative
}

// through looks through folders and what is below them, those near the top first.
func (l *look) through(queue []string) {
	for queue = slices.Clone(queue); len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		var ofGit, obeyed, folders []string
		for _, e := range l.read(dir) {
			name := e.Name()
			if slices.Contains(gitNames, name) {
				ofGit = append(ofGit, name)
			}
			switch {
			case isClosed(filepath.Base(dir), name):
				obeyed = append(obeyed, filepath.Join(dir, name))
			case e.IsDir() && name != "node_modules":
				folders = append(folders, filepath.Join(dir, name))
			}
		}
		if isGitDir(func(name string) bool { return slices.Contains(ofGit, name) }) {
			l.found = append(l.found, dir)
			continue
		}
		l.found = append(l.found, slices.DeleteFunc(obeyed, func(rel string) bool { return l.skip[rel] })...)
		slices.Sort(folders)
		for _, rel := range folders {
			if _, known := l.was[rel]; !known && !l.skip[rel] {
				queue = append(queue, rel)
			}
		}
	}
}

// gitNames are what isGitDir asks for.
var gitNames = []string{"HEAD", "commondir", "objects", "refs"}

// read lists a folder: all of it, or what matters most where no more may be looked at.
func (l *look) read(dir string) []fs.DirEntry {
	path := filepath.Join(l.root, dir)
	if l.left <= 0 {
		l.unread(dir)
		return named(path, append([]string{".git"}, gitNames...))
	}
	// It may be swapped for something else meanwhile.
	f, err := os.OpenFile(path, syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		l.unread(dir)
		return nil
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil {
		l.folders[dir] = stampOf(info) // first: what comes in while it is read counts as a change
	}
	entries, _ := f.ReadDir(l.left)
	if l.left -= len(entries); l.left <= 0 { // there may be more
		l.whole = false
		entries = append(entries, named(path, slices.Concat(gitNames, closed))...)
	}
	return entries
}

// unread notes a folder that is not looked through, in case it changes.
func (l *look) unread(dir string) {
	l.whole = false
	if info, err := os.Lstat(filepath.Join(l.root, dir)); err == nil {
		l.folders[dir] = stampOf(info)
	}
}

// named lists those of the names that are in a folder.
func named(dir string, names []string) (entries []fs.DirEntry) {
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			entries = append(entries, fs.FileInfoToDirEntry(info))
		}
	}
	return entries
}
