package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A layer is shared by runs that trust it with the files of their writers, and lies in a
// cache, which anybody may clean and a power cut may leave half written. Its lease holds a
// seal: what the system says of every file in it, and by which the next run sees that nobody
// touched them.

// worthSync is the number of files from which a layer is to outlive the next start of the
// system: it is written to the disk for that, which others that write have to wait for.
const worthSync = 5_000

// seal writes the lease of a finished layer.
func seal(dir string) error {
	text, files, err := sealOf(dir)
	switch {
	case err != nil:
	case files < worthSync:
		text += "\n" + bootID()
	default:
		err = syncAll(dir)
	}
	if err != nil {
		return fmt.Errorf("seal layer: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, layerLease), []byte(text), 0o600)
}

// syncAll writes the file system of a folder to the disk: of 25,000 files each by itself would
// take minutes.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Syncfs(int(f.Fd()))
}

// bootID says which start of the system this is; "" where that is not known.
func bootID() string {
	text, _ := readPlain("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// sealed reports whether the layer in a folder is as it was when it was sealed.
func sealed(dir string) bool {
	text, err := readPlain(filepath.Join(dir, layerLease))
	if err != nil {
		return false
	}
	want, boot, once := strings.Cut(string(text), "\n")
	if once && (boot == "" || boot != bootID()) {
		return false
	}
	sum, _, err := sealOf(dir)
	return err == nil && sum == want
}

// sealOf sums up everything in a layer but its lease. Nothing can be written to a file, moved
// or put in its place without a change of what is looked at here.
func sealOf(dir string) (text string, files int, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		name := strings.TrimPrefix(path, dir)
		if !ok || name == "/"+layerLease {
			return nil
		}
		line := fmt.Appendf(nil, "%q %o %d", name, st.Mode, st.Ino)
		if !d.IsDir() { // of a folder its entries tell
			line = fmt.Appendf(line, " %d %d %d", st.Size, info.ModTime().UnixNano(), unix.TimespecToNsec(unix.Timespec(st.Ctim)))
		}
		files++
		_, err = sum.Write(append(line, '\n'))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), files, err
}
