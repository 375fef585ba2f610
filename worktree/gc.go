package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// KeptFor is how long [Repo.GC] lets kept things be, unless it is told otherwise.
const KeptFor = 30 * 24 * time.Hour

// gcEvery is how often [Repo.GCDaily] does something.
const gcEvery = 24 * time.Hour

// Collected is what [Repo.GC] removed.
type Collected struct {
	Dropped []KeptChange
	Records int      // of what runs applied; see [Repo.RunDiff]
	Left    []string // folders with files that had been left out of changes
	Packs   int      // packs that were put together into fewer
}

// GC removes what is older: kept changes, folders with what was left out of changes,
// records of what was applied, and layers that nobody used since, of any repository. It
// lets go of commits of the user's that ended runs held for nothing, and packs the store
// where it has become many small packs. While a run lives, this Repo's own too, nothing is
// packed.
func (r *Repo) GC(ctx context.Context, older time.Duration) (Collected, error) {
	var done Collected
	ok, err := r.find()
	if ok {
		err = r.gc(ctx, time.Now().Add(-older), &done)
	}
	if err != nil {
		err = fmt.Errorf("remove what is old: %w", err)
	}
	return done, err
}

// GCDaily is [Repo.GC] at the end of a run, which it is not unless a day has gone by since the
// last time: nobody has to think of it. A store that was never collected counts from now on.
func (r *Repo) GCDaily(ctx context.Context, older time.Duration) (Collected, error) {
	if ok, err := r.find(); !ok {
		return Collected{}, err
	}
	stamp := filepath.Join(r.store, "collected")
	info, err := os.Lstat(stamp)
	if err == nil && time.Since(info.ModTime()) < gcEvery {
		return Collected{}, nil
	}
	// First: what fails is not tried at the end of each run.
	if failed := writeWhole(stamp, nil); failed != nil || missing(err) {
		return Collected{}, failed
	}
	return r.GC(ctx, older)
}

func (r *Repo) gc(ctx context.Context, before time.Time, done *Collected) error {
	list, err := r.kept(ctx, "")
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.Err != nil || !k.When.Before(before) { // of what cannot be read nobody knows how old it is
			continue
		}
		if err := r.Drop(ctx, k); err != nil {
			return err
		}
		done.Dropped = append(done.Dropped, k)
	}
	records, err := r.records(ctx)
	if err != nil {
		return err
	}
	for _, a := range records {
		if !a.when.Before(before) {
			continue
		}
		if _, err := r.git.run(ctx, r.ours(), nil, "update-ref", "-d", a.ref); err != nil {
			return err
		}
		done.Records++
	}
	if done.Left, err = r.removeLeft(before); err != nil {
		return err
	}
	if err := r.sweepOld(before); err != nil {
		return err
	}
	return r.locked(func() error {
		leases, quiet, err := quiesce(r.store)
		defer func() {
			for _, lease := range leases {
				lease.release()
			}
		}()
		if err != nil || !quiet {
			return err
		}
		if err := errors.Join(r.dropHeads(ctx), r.removeHalves()); err != nil {
			return err
		}
		done.Packs, err = r.repack(ctx)
		return err
	})
}

// removeLeft removes the folders with what was left out of changes of this repository.
func (r *Repo) removeLeft(before time.Time) (removed []string, err error) {
	runs, err := glob(filepath.Join(r.cache, "left"), filepath.Base(r.stores()[1])+"-*")
	var mine []string
	for _, run := range runs {
		folders, failed := glob(run, "*")
		mine, err = append(mine, folders...), errors.Join(err, failed)
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range mine {
		info, err := os.Lstat(folder)
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		if err := removeAll(folder); err != nil {
			return removed, err
		}
		removed = append(removed, folder)
		_ = os.Remove(filepath.Dir(folder)) // with the last of a run
	}
	return removed, nil
}

// quiesce takes the leases of all runs of a store and reports whether none lives.
func quiesce(store string) (leases []*lock, quiet bool, err error) {
	names, err := os.ReadDir(filepath.Join(store, "runs"))
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		lease, err := tryLock(filepath.Join(store, "runs", name.Name(), "lease"))
		switch {
		case errors.Is(err, errHeld):
			return leases, false, nil
		case err == nil:
			leases = append(leases, lease)
		case !missing(err):
			return leases, false, err
		}
	}
	return leases, true, nil
}

// dropHeads removes refs in the user's repository for which we have nothing any more.
// What an interrupted run left goes with [Repo.Recover].
func (r *Repo) dropHeads(ctx context.Context) error {
	if r.store != r.stores()[0] {
		return nil
	}
	refs, err := r.refs(ctx, "", "")
	if err != nil {
		return err
	}
	out, err := r.git.line(ctx, r.tree.at, "for-each-ref", "--format=%(refname)", "refs/skein/")
	if err != nil {
		return err
	}
	for _, head := range strings.Fields(out) {
		run, ok := strings.CutSuffix(head, "/head")
		needed := slices.ContainsFunc(refs, func(ref runRef) bool {
			return ref.id.ref("") == run+"/" && !strings.HasPrefix(ref.name, recordKind)
		})
		parts := strings.Split(strings.TrimPrefix(run, "refs/skein/"), "/")
		if !ok || needed || len(parts) != 2 {
			continue
		}
		if _, err := os.Lstat(filepath.Join(r.store, "runs", runID{parts[0], parts[1]}.folder())); !missing(err) {
			continue
		}
		if _, err := r.git.run(ctx, r.tree.at, nil, "update-ref", "-d", head); err != nil {
			return err
		}
	}
	return nil
}

// manyPacks is how many packs may gather: git looks into each of them for an object that
// it does not find.
const manyPacks = 50

// repack puts all packs together into one for each run, since each run borrows from
// another commit of the user's: what one run's commit holds may leave the user's store
// while another run needs it. What no ref needs goes. No run lives.
func (r *Repo) repack(ctx context.Context) (int, error) {
	old, err := glob(filepath.Join(r.objects(), "pack"), "*.pack")
	if err != nil || len(old) <= manyPacks {
		return 0, err
	}
	refs, err := r.refs(ctx, "", "%(objectname)%00%(objecttype)%00%(*objecttype)")
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(refs, func(ref runRef) bool { return ref.err != nil }) {
		return 0, nil // who repairs it may need any object
	}
	runs, records := map[runID]string{}, ""
	for _, ref := range refs {
		if strings.HasPrefix(ref.name, recordKind) {
			records += ref.fields[0] + "\n" // borrows from nothing
		} else {
			runs[ref.id] += ref.fields[0] + "\n"
		}
	}
	all := []string{records}
	for id, revs := range runs {
		head, err := r.git.line(ctx, r.tree.at, "rev-parse", "-q", "--verify", id.ref("head"))
		if err == nil {
			revs += "^" + head + "\n"
		} else if exitOf(err) != 1 {
			return 0, err
		}
		all = append(all, revs)
	}
	fresh := map[string]bool{}
	for _, revs := range all {
		if revs == "" {
			continue
		}
		name, err := r.git.run(ctx, r.ours(), []byte(revs), "pack-objects", "-q", "--revs", filepath.Join(r.objects(), "pack", "pack"))
		if err != nil {
			return 0, err
		}
		for _, hash := range strings.Fields(string(name)) {
			fresh["pack-"+hash] = true
		}
	}
	for _, pack := range old {
		if stem := strings.TrimSuffix(pack, ".pack"); !fresh[filepath.Base(stem)] {
			// The index first: git finds packs by it.
			for _, ending := range []string{".idx", ".rev", ".pack"} {
				if err := os.Remove(stem + ending); err != nil && !missing(err) {
					return 0, err
				}
			}
		}
	}
	return len(old), r.removeLoose()
}

// looseTime is how long an object outside of packs may be in use by somebody without a lease,
// such as a diff at work: git writes it, or notes the time anew, when it is asked for.
const looseTime = time.Hour

// removeHalves removes what a crash, or a full disk, left of objects and packs: our names for them
// and git's.
func (r *Repo) removeHalves() error {
	var all []string
	var err error
	for _, in := range [][2]string{{"pack", "*-new-*"}, {"pack", "tmp_*"}, {"[0-9a-f][0-9a-f]", "*-new-*"}, {"[0-9a-f][0-9a-f]", "tmp_obj_*"}} {
		folders, failed := glob(r.objects(), in[0])
		err = errors.Join(err, failed)
		for _, folder := range folders {
			halves, failed := glob(folder, in[1])
			all, err = append(all, halves...), errors.Join(err, failed)
		}
	}
	for _, name := range all {
		if info, failed := os.Lstat(name); failed == nil && time.Since(info.ModTime()) > looseTime {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// removeLoose removes objects that are in no pack, since repack has put those in use there.
func (r *Repo) removeLoose() error {
	folders, err := glob(r.objects(), "[0-9a-f][0-9a-f]")
	for _, folder := range folders {
		names, failed := os.ReadDir(folder)
		err = errors.Join(err, failed)
		for _, name := range names {
			if info, failed := name.Info(); failed == nil && time.Since(info.ModTime()) > looseTime {
				err = errors.Join(err, os.Remove(filepath.Join(folder, name.Name())))
			}
		}
		_ = os.Remove(folder) // not if any is left
	}
	return err
}
