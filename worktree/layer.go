package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
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
	users int    // copies of this run that are made of it
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

// probing begins the names of folders that are there to see what a file system can hold.
const probing = "probe-"

// layerTime is how long another run may take to make a layer that this one waits for.
const layerTime = 10 * time.Minute

// errNoLayer means that a tree cannot be had as layers; the text says why.
type errNoLayer string

func (e errNoLayer) Error() string { return string(e) }

// layerOf gives the layer of a tree to one copy, making it if need be; [Repo.leave] gives it
// back. An [errNoLayer] means that the tree needs a fresh copy.
func (r *Repo) layerOf(ctx context.Context, tree string) (*layer, error) {
	// One at a time: whoever comes second finds what the first one made.
	select {
	case r.layering <- struct{}{}:
		defer func() { <-r.layering }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if l := r.use(tree, nil); l != nil {
		return l, nil
	}
	l, err := r.findOrMake(ctx, tree)
	if err != nil {
		return nil, err
	}
	return r.use(tree, l), nil
}

// use counts one more copy of the layer that the run holds of a tree, which it may get just
// now; nil if it holds none. What it held without need before is given back.
func (r *Repo) use(tree string, got *layer) *layer {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.layers[tree]
	if l == nil && got == nil {
		return nil
	}
	if l == nil {
		l = got
		r.layers[tree] = l
	}
	l.users++
	r.newest = l
	r.letGoLocked()
	return l
}

// leave tells that a copy of the layer is gone.
func (r *Repo) leave(l *layer) {
	if l == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.users--
	r.letGoLocked()
}

// letGoLocked gives back layers that no copy needs. Not the one that was asked for last: the
// next batch may start from the same snapshot.
func (r *Repo) letGoLocked() {
	for tree, l := range r.layers {
		if l.users == 0 && l != r.newest {
			l.release()
			delete(r.layers, tree)
		}
	}
}

// release gives the leases of a layer back.
func (l *layer) release() {
	l.lease.release()
	if l.below != nil {
		l.below.lease.release()
	}
}

func (r *Repo) findOrMake(ctx context.Context, tree string) (*layer, error) {
	s, err := r.settings(ctx)
	if err != nil {
		return nil, err
	}
	home := r.layersFolder()
	m := &mason{repo: r, tree: tree, settings: s, kind: "-" + r.checkoutKind(s)}
	if l := r.findLayer(tree, m.kind); l != nil {
		return l, nil
	}
	guard, err := lockLayers(ctx, home)
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

// lockLayers locks a folder with layers. It may have to be made, more than once: see tidy.
func lockLayers(ctx context.Context, home string) (*lock, error) {
	for {
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
		if guard, err := waitLock(ctx, filepath.Join(home, layersLock), layerTime); !missing(err) {
			return guard, err
		}
	}
}

// layersLock is held by who makes layers in a folder, or removes them.
const layersLock = "lock"

// checkoutKind names everything but the tree that decides about the bytes of a checkout.
func (r *Repo) checkoutKind(s settings) string {
	_, attributes := s.rules()
	text := strings.Join(s.core, "\n") + "\x00" + r.text("info/attributes") + "\x00" + attributes
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
		if stands(f, name) {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.layers {
		l.release()
	}
	clear(r.layers)
	r.newest = nil
}

// commitTree is the tree of a commit.
func (r *Repo) commitTree(ctx context.Context, commit string) (string, error) {
	return r.git.line(ctx, r.ours(), "rev-parse", "--verify", commit+"^{tree}")
}
