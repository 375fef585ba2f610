package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The store is a bare git directory of ours. It holds all objects and refs we make,
// and below runs/ one folder for each run: its lease, its temporary indexes, its
// ledgers. It sits in the user's git directory, or in the cache where that cannot be
// written, and borrows their objects as an alternate.

// stores are the places where the store may be, best first.
func (r *Repo) stores() []string {
	sum := sha256.Sum256([]byte(r.common))
	return []string{
		filepath.Join(r.common, "skein"),
		filepath.Join(r.cache, "git", hex.EncodeToString(sum[:8])),
	}
}

// findStore is the store that exists and can be written; "" without one.
func (r *Repo) findStore() string {
	for i, dir := range r.stores() {
		if i > 0 && r.checkCache() != nil {
			continue
		}
		_, err := os.Lstat(filepath.Join(dir, "HEAD"))
		if i > 0 && missing(err) && r.adopt(dir) {
			err = nil
		}
		if err == nil && writable(dir) {
			return dir
		}
	}
	return ""
}

// MakeStore makes the store where there is none, as the first snapshot else does: a box that
// is opened before that would show it later. It may be called at any time.
func (r *Repo) MakeStore() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.someStore()
	return err
}

// someStore is the store, made if there is none.
func (r *Repo) someStore() (string, error) {
	if store := r.findStore(); store != "" {
		return store, nil
	}
	var errs []error
	for _, dir := range r.stores() {
		err := r.makeStore(dir)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("make store: %w", errors.Join(errs...))
}

// makeStore makes the bare git directory in one step. Written by hand: git init would
// copy the user's templates, hooks included.
func (r *Repo) makeStore(dir string) error {
	parent := filepath.Dir(dir)
	if parent != r.common {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(parent, "skein-new-")
	if err != nil {
		return err
	}
	err = makeGitDir(tmp, r.storeFiles(dir))
	if err == nil {
		err = os.Mkdir(filepath.Join(tmp, "runs"), 0o700)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
		if r.findStore() == dir {
			return nil // another run was faster
		}
	}
	return err
}

// storeFiles are the files of a store that say what it is.
func (r *Repo) storeFiles(dir string) map[string]string {
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  coreConfig(r.format, "bare = true"),
		"objects/info/alternates": "../../objects\n",
	}
	if filepath.Dir(dir) != r.common {
		files["objects/info/alternates"] = quoteAlternate(filepath.Join(r.common, "objects")) + "\n"
		files[identityFile] = r.identity().text()
	}
	return files
}

// makeGitDir writes the files of a git directory. HEAD comes last: with it the folder
// is a git directory.
func makeGitDir(dir string, files map[string]string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	head := files["HEAD"]
	for name, text := range files {
		if name == "HEAD" || text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "HEAD"), []byte(head), 0o600)
}

// coreConfig is the head of a configuration file, with lines for its core section.
func coreConfig(format string, lines ...string) string {
	version, extension := "0", ""
	if format != "sha1" {
		version, extension = "1", "[extensions]\n\tobjectFormat = "+format+"\n"
	}
	lines = append([]string{"repositoryformatversion = " + version}, lines...)
	return extension + "[core]\n\t" + strings.Join(lines, "\n\t") + "\n"
}

// quoteAlternate writes a path as a line of objects/info/alternates.
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, "\n\"#") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// mirror makes to a copy of from, or absent like it.
func mirror(from, to string) error {
	text, err := readPlain(from)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Remove(to)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	if old, err := readPlain(to); err == nil && string(old) == string(text) {
		return nil
	}
	return writeWhole(to, text)
}

// writeWhole writes a file in one step.
func writeWhole(to string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+"-new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what a full disk took half of would fill it
	}
	return err
}

// writable reports whether files can be made in dir.
func writable(dir string) bool {
	const write, search = 2, 1
	return syscall.Access(dir, write|search) == nil
}
