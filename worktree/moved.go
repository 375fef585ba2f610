package worktree

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// A store in the cache is found by the path of its repository, and does not move with that.
// It says therefore of which repository it is.

// identityFile holds the identity of the repository in a store in the cache.
const identityFile = "repository"

// An identity tells a repository from others. The numbers stay when it is moved on its file
// system.
type identity struct {
	Path          bytePath // of the git directory
	Device, Inode uint64
}

// identity is that of the repository; the zero one if it cannot be had.
func (r *Repo) identity() identity {
	var st syscall.Stat_t
	if err := syscall.Stat(r.common, &st); err != nil {
		return identity{}
	}
	return identity{bytePath(r.common), uint64(st.Dev), st.Ino} //nolint:unconvert // no uint64 on a Mac
}

// text is an identity as it is written.
func (id identity) text() string {
	text, err := json.Marshal(id)
	if err != nil {
		return ""
	}
	return string(text)
}

// moved reads the identity in a store; false if its repository is where it was.
func moved(store string) (id identity, ok bool) {
	text, err := readPlain(filepath.Join(store, identityFile))
	if err != nil || json.Unmarshal(text, &id) != nil || id.Path == "" {
		return id, false
	}
	return id, gone(string(id.Path)) != nil
}

// adopt moves the store that this repository had at another path to where one is looked
// for. It reports whether there was one. A store that a run works with stays where it is.
func (r *Repo) adopt(to string) bool {
	mine := r.identity()
	stores, err := glob(filepath.Dir(to), "*")
	if err != nil || mine.Inode == 0 {
		return false
	}
	for _, store := range stores {
		was, ok := moved(store)
		if !ok || was.Device != mine.Device || was.Inode != mine.Inode {
			continue
		}
		leases, quiet, err := quiesce(store)
		ok = err == nil && quiet && os.Rename(store, to) == nil
		for _, lease := range leases {
			lease.release()
		}
		if ok {
			return true
		}
	}
	return false
}

// A MovedStore is what is kept of a repository that is not where it was.
type MovedStore struct {
	Was   string // path of its git directory
	Store string // our git directory with the changes, in the cache
}

// Moved lists the stores in the cache that keep changes of repositories which are gone, or
// elsewhere. That of this repository finds itself, if it was moved on its file system: of
// any other a person must know. Anybody may call it at any time.
func (r *Repo) Moved() ([]MovedStore, error) {
	r.findStore() // which may be one of them
	stores, err := glob(filepath.Join(r.cache, "git"), "*")
	if err != nil {
		return nil, fmt.Errorf("list stores: %w", err)
	}
	var list []MovedStore
	for _, store := range stores {
		if id, ok := moved(store); ok && keepsAny(store) {
			list = append(list, MovedStore{string(id.Path), store})
		}
	}
	return list, nil
}

// keepsAny reports whether a store has the ref of a kept change.
func keepsAny(store string) bool {
	sessions, _ := glob(filepath.Join(store, "refs", "skein"), "*") // what cannot be read is not there
	for _, session := range sessions {
		runs, _ := glob(session, "*")
		for _, run := range runs {
			if kept, _ := glob(filepath.Join(run, "kept"), "*"); len(kept) > 0 {
				return true
			}
		}
	}
	return false
}
