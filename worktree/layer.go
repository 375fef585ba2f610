package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A layer is a folder of the cache, shared by all copies of one tree and never changed
// once it is there: a base, which holds all files, or a delta over a base, which holds
// those in which the tree differs. There is at most one delta over a base.
type layer struct {
	dir   string
	below *layer // nil for a base
	lease *lock  // shared; while it is held nobody removes the layer
}

// What the folder of a layer holds.
const (
	layerTree   = "tree"   // files; of a delta with whiteouts for what it takes away
	layerIndex  = "index"  // the tree's, every entry marked as not checked out: see upper.go
	layerSplit  = "split"  // a writer's index, without what it shares with others: that is
	layerShared = "shared" // in this folder, which a box shows read-only
	layerLease  = "lease"
)

func (l *layer) file(name string) string { return filepath.Join(l.dir, name) }

// underConstruction begins the names of layers that have not got theirs yet.
const underConstruction = "new-"

// layerTime is how long another run may take to make a layer that this one waits for.
const layerTime = 10 * time.Minute

// errNoLayer means that a tree cannot be had as layers; the text says why.
type errNoLayer string

func (e errNoLayer) Error() string { return string(e) }

// layerOf gives the layer of a tree, making it if need be. The run holds it until
// [Repo.Close]. An [errNoLayer] means that the tree needs a fresh copy.
func (r *Repo) layerOf(ctx context.Context, tree string) (*layer, error) {
	// One at a time: whoever comes second finds what the first one made.
	select {
	case r.layering <- struct{}{}:
		defer func() { <-r.layering }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l := r.layers[tree]; l != nil {
		return l, nil
	}
	l, err := r.findOrMake(ctx, tree)
	if err == nil {
		r.layers[tree] = l
	}
	return l, err
}

func (r *Repo) findOrMake(ctx context.Context, tree string) (*layer, error) {
	s, err := r.settings(ctx)
	if err != nil {
		return nil, err
	}
	home := r.layersFolder()
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	m := &mason{repo: r, tree: tree, settings: s, kind: "-" + r.checkoutKind(s)}
	if l := r.findLayer(tree, m.kind); l != nil {
		return l, nil
	}
	guard, err := waitLock(ctx, filepath.Join(home, "lock"), layerTime)
	if err != nil {
		return nil, err
	}
	defer guard.release()
	sweep(home, keepBases, keepDeltas, time.Time{})
	if l := r.findLayer(tree, m.kind); l != nil {
		return l, nil
	}
	return m.make(ctx)
}

// layersFolder is where the layers of this repository are.
func (r *Repo) layersFolder() string {
	return filepath.Join(r.cache, "bases", filepath.Base(r.stores()[1]))
}

// checkoutKind names everything but the tree that decides about the bytes of a checkout.
func (r *Repo) checkoutKind(s settings) string {
	text := strings.Join(s.core, "\n") + "\x00" + r.text("info/attributes") + "\x00"
	if s.attributes != "" {
		if b, err := readPlain(s.attributes); err == nil {
			text += string(b)
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// findLayer leases the layer of a tree, a base if there is one; nil without.
func (r *Repo) findLayer(tree, kind string) *layer {
	base := filepath.Join(r.layersFolder(), tree+kind)
	if l := trustedLayer(base); l != nil {
		return l
	}
	deltas, _ := glob(r.layersFolder(), tree+kind+"+*") // what cannot be read is not there
	for _, dir := range deltas {
		_, below, _ := strings.Cut(filepath.Base(dir), "+")
		under := trustedLayer(filepath.Join(r.layersFolder(), below))
		if under == nil {
			continue
		}
		if l := trustedLayer(dir); l != nil {
			l.below = under
			return l
		}
		under.lease.release()
	}
	return nil
}

// trustedLayer leases the layer in a folder; nil if it is not there, or not as it was made:
// then it goes.
func trustedLayer(dir string) *layer {
	l := leaseLayer(dir)
	if l == nil || sealed(dir) {
		return l
	}
	l.lease.release()
	discard(dir)
	return nil
}

// leaseLayer takes a shared lease of the layer in a folder; nil if it is not there, or
// is just being removed.
func leaseLayer(dir string) *layer {
	name := filepath.Join(dir, layerLease)
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	l := &layer{dir: dir, lease: &lock{f}}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		// Between opening and locking it may have been taken away.
		mine, err := f.Stat()
		if now, lerr := os.Lstat(name); err == nil && lerr == nil && os.SameFile(mine, now) {
			_ = os.Chtimes(name, time.Time{}, time.Now()) // how recently it was used decides what stays
			return l
		}
	}
	l.lease.release()
	return nil
}

// releaseLayers gives the leases of all layers back.
func (r *Repo) releaseLayers() {
	r.layering <- struct{}{}
	defer func() { <-r.layering }()
	for tree, l := range r.layers {
		l.lease.release()
		if l.below != nil {
			l.below.lease.release()
		}
		delete(r.layers, tree)
	}
}

// commitTree is the tree of a commit.
func (r *Repo) commitTree(ctx context.Context, commit string) (string, error) {
	return r.git.line(ctx, r.ours(), "rev-parse", "--verify", commit+"^{tree}")
}

// Layers that nobody uses stay for the next run: so many of the last used ones.
const (
	keepBases  = 3
	keepDeltas = 16
)

// sweepOld removes the layers of the repository that nobody uses nor used since, unless
// somebody is at them right now.
func (r *Repo) sweepOld(before time.Time) error {
	home := r.layersFolder()
	guard, err := tryLock(filepath.Join(home, "lock"))
	switch {
	case errors.Is(err, errHeld), missing(err):
		return nil
	case err != nil:
		return err
	}
	defer guard.release()
	sweep(home, keepBases, keepDeltas, before)
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
