package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// begin makes the store and takes the run's lease, once.
func (r *Repo) begin(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease != nil {
		return nil
	}
	if err := r.makeCache(); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	if err := r.chooseLocked(ctx, r.asked); err != nil {
		return err
	}
	store, err := r.someStore()
	if err != nil {
		return err
	}
	if err := r.secureStore(store); err != nil {
		return err
	}
	// Without the user's list of cut-off commits git would look for their parents.
	if err := mirror(filepath.Join(r.common, "shallow"), filepath.Join(store, "shallow")); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	// Between making the lease and locking it, Recover would take the run for dead.
	guard, err := waitLock(ctx, filepath.Join(store, "lock"), r.lockTime)
	if err != nil {
		return err
	}
	defer guard.release()
	folder := filepath.Join(store, "runs", r.id.folder())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make run folder: %w", err)
	}
	lease, err := tryLock(filepath.Join(folder, "lease"))
	if err != nil {
		return fmt.Errorf("take lease of %s/%s: %w", r.id.session, r.id.run, err)
	}
	if r.home, err = r.homeOf(lease.file.Stat()); err != nil {
		lease.release()
		return fmt.Errorf("take lease: %w", err)
	}
	text, err := json.Marshal(leaseText{Copies: bytePath(r.copiesFolder())})
	if err == nil {
		err = errors.Join(lease.file.Truncate(0), writeAt(lease.file, text))
	}
	if err != nil {
		lease.release()
		return fmt.Errorf("write lease: %w", err)
	}
	r.store = store
	// Recover may have been passed over. No snapshot is taken of half a change.
	if err := r.clearLedgers(ctx, r.tree); err != nil {
		lease.release()
		return err
	}
	r.lease = lease
	return nil
}

// leaseText is what a lease file says to whoever finds its run dead.
type leaseText struct {
	Copies bytePath // folder with the copies of the run
}

func writeAt(f *os.File, text []byte) error {
	_, err := f.WriteAt(text, 0)
	return err
}

// copiesFolder is where the copies of the run live.
func (r *Repo) copiesFolder() string {
	return filepath.Join(r.cache, "copies", r.home+"@"+r.id.folder())
}

func (r *Repo) runFolder() string { return filepath.Join(r.store, "runs", r.id.folder()) }

// ours is the place for calls that need no working tree.
func (r *Repo) ours() place { return place{dir: r.store, gitDir: r.store} }

// objects is the folder that all our objects go to.
func (r *Repo) objects() string { return filepath.Join(r.store, "objects") }

// next is a name in the run folder that was not used before.
func (r *Repo) next(kind string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		r.serial++
		path := filepath.Join(r.runFolder(), fmt.Sprintf("%s-%d", kind, r.serial))
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

// Close ends the run: copies that hold nothing are removed, the work in others is kept
// on a ref first, the run's refs go unless anything is kept. It returns what it kept,
// and which copies it could not remove. It may be called twice.
func (r *Repo) Close(ctx context.Context) ([]Recovered, error) {
	r.mu.Lock()
	if r.lease == nil {
		r.mu.Unlock()
		return nil, nil
	}
	var left []*Copy
	for _, c := range r.copies {
		left = append(left, c)
	}
	r.mu.Unlock()
	slices.SortFunc(left, func(a, b *Copy) int { return cmp.Compare(a.Name, b.Name) })
	var kept []Recovered
	for _, c := range left {
		rec := c.reclaim(ctx)
		if rec.Action == Kept || rec.Action == Failed {
			rec.Session, rec.Run = r.id.session, r.id.run
			kept = append(kept, rec)
		}
	}
	err := r.end(ctx, r.id)
	r.releaseLayers()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease.release()
	r.lease, r.head = nil, ""
	if err != nil {
		return kept, fmt.Errorf("close worktrees: %w", err)
	}
	return kept, nil
}

// end removes what a run leaves: its refs unless it keeps something, save the records of
// what it applied, and its folder unless copies or unfinished ledgers are still there. The
// caller has its lease.
func (r *Repo) end(ctx context.Context, id runID) error {
	if err := gone(r.store); err != nil {
		return err
	}
	refs, err := r.git.line(ctx, r.ours(), "for-each-ref", "--format=%(refname)", id.ref(""))
	if err != nil {
		return err
	}
	names := strings.Fields(refs)
	kept := slices.ContainsFunc(names, func(ref string) bool { return strings.HasPrefix(ref, id.ref("kept/")) })
	folder := filepath.Join(r.store, "runs", id.folder())
	copies := r.copiesOf(folder)
	_ = syscall.Rmdir(copies) // fails while copies are there, as it should
	_, err = os.Lstat(copies)
	busy := err == nil
	if !kept && !busy {
		for _, ref := range names {
			if strings.HasPrefix(ref, id.ref(recordKind)) {
				continue
			}
			if _, err := r.git.run(ctx, r.ours(), nil, "update-ref", "-d", ref); err != nil {
				return err
			}
		}
		if r.stores()[0] == r.store {
			if _, err := r.git.run(ctx, r.tree.at, nil, "update-ref", "-d", id.ref("head")); err != nil {
				return err
			}
		}
	}
	ledgers, err := ledgersOf(folder)
	if err != nil || len(ledgers) > 0 || busy {
		return err
	}
	return os.RemoveAll(folder)
}

// readLease reads what a lease file says; nothing where it says nothing.
func readLease(path string) leaseText {
	var t leaseText
	text, err := readPlain(path)
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return leaseText{}
	}
	return t
}
