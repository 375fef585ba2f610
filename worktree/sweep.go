package worktree

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Layers that nobody uses stay for the next run: so many of the last used ones.
const (
	keepBases  = 3
	keepDeltas = 16
)

// sweepOld removes layers that nobody uses nor used since, those of other repositories too:
// theirs may be gone, and nobody would ever come back for them.
func (r *Repo) sweepOld(before time.Time) error {
	homes, err := glob(filepath.Join(r.cache, "bases"), "*")
	for _, home := range homes {
		err = errors.Join(err, tidy(home, before))
	}
	return err
}

// probeTime is how long a folder that layers were tried in may stay: its process is dead.
const probeTime = time.Hour

// tidy is sweepOld for one folder with layers, which goes with the last of them, unless somebody
// is at it right now.
func tidy(home string, before time.Time) error {
	if strings.HasPrefix(filepath.Base(home), probing) {
		if info, err := os.Lstat(home); err == nil && time.Since(info.ModTime()) > probeTime {
			return removeAll(home)
		}
		return nil
	}
	guard, err := tryLock(filepath.Join(home, layersLock))
	switch {
	case errors.Is(err, errHeld), missing(err): // no folder: none of ours
		return nil
	case err != nil:
		return err
	}
	defer guard.release()
	sweep(home, keepBases, keepDeltas, before)
	if left, err := os.ReadDir(home); err == nil && len(left) == 1 {
		_ = os.Remove(filepath.Join(home, layersLock))
		_ = syscall.Rmdir(home) // not if somebody makes another lock: see lockLayers
	}
	return nil
}

// sweep removes layers of a repository that nobody uses, save the last used ones unless that
// is before then, and what a crash left half made. The caller holds the lock of the folder.
// What cannot be removed is left for the next time.
func sweep(home string, bases, deltas int, then time.Time) {
	names, err := os.ReadDir(home)
	if err != nil {
		return
	}
	used := map[string]time.Time{}
	for _, d := range names {
		info, err := os.Lstat(filepath.Join(home, d.Name(), layerLease))
		switch {
		case !d.IsDir():
		case err != nil, strings.HasPrefix(d.Name(), underConstruction): // who makes one holds the lock
			_ = removeAll(filepath.Join(home, d.Name()))
		default:
			used[d.Name()] = info.ModTime()
		}
	}
	last := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range last {
		_, below, delta := strings.Cut(name, "+")
		_, there := used[below]
		switch {
		case used[name].Before(then):
			discard(filepath.Join(home, name))
		case delta && there && deltas > 0:
			deltas--
		case !delta && bases > 0:
			bases--
		default:
			discard(filepath.Join(home, name))
		}
	}
}

// discard removes a layer unless somebody uses it. Its lease goes first: nobody finds one
// that is half removed.
func discard(dir string) {
	lease, err := tryLock(filepath.Join(dir, layerLease))
	if err != nil {
		return
	}
	defer lease.release()
	if os.Remove(filepath.Join(dir, layerLease)) == nil {
		_ = removeAll(dir)
	}
}
