package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// What Recover did.
const (
	RolledBack = "rolled back" // an Apply that had changed some files
	Finished   = "finished"    // an Apply that had changed all files
	Removed    = "removed"     // a copy that held nothing
	Kept       = "kept"        // a copy that held work: it is on Ref now, or in Folder
	Failed     = "failed"      // see Err; it stays, is tried again at each start, and told of if Err is another one
)

// Recovered is one thing that a dead run had left.
type Recovered struct {
	Session, Run string
	Name         string // of a copy; "" for an Apply
	Action       string
	Ref          string   // of a kept copy
	Paths        []string // files that somebody changed since, left as they are; or the files in Folder
	Folder       string   // holds what was left out of a copy's change, or is a copy that failed
	Err          error
}

// reclaimTime is what one copy may take. What a writer left in it must not keep the
// next run from beginning.
const reclaimTime = time.Minute

// Recover rolls back or finishes what runs of dead processes left half applied, and
// reclaims their copies. It is called at the start of a run and may be called at any
// time: runs that live hold their leases.
func (r *Repo) Recover(ctx context.Context) ([]Recovered, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store == "" {
		if r.store = r.findStore(); r.store == "" {
			return nil, nil
		}
	}
	if err := r.secureStore(r.store); err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	guard, err := waitLock(ctx, filepath.Join(r.store, "lock"))
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	defer guard.release()
	runs, err := os.ReadDir(filepath.Join(r.store, "runs"))
	if err != nil {
		return nil, fmt.Errorf("recover: %w", err)
	}
	var done []Recovered
	for _, d := range runs {
		session, run, ok := strings.Cut(d.Name(), "@")
		if !ok || !d.IsDir() {
			continue
		}
		lease, err := tryLock(filepath.Join(r.store, "runs", d.Name(), "lease"))
		if errors.Is(err, errHeld) {
			continue
		}
		if err == nil {
			var list []Recovered
			list, err = r.recoverRun(ctx, runID{session, run})
			done = append(done, list...)
			lease.release()
		}
		if err != nil {
			done = append(done, Recovered{Session: session, Run: run, Action: Failed, Err: err})
		}
	}
	return done, nil
}

// recoverRun clears up after one dead run, whose lease the caller holds.
func (r *Repo) recoverRun(ctx context.Context, id runID) ([]Recovered, error) {
	var done []Recovered
	note := func(rec Recovered) {
		rec.Session, rec.Run = id.session, id.run
		done = append(done, rec)
	}
	folder := filepath.Join(r.store, "runs", id.folder())
	applies, err := filepath.Glob(filepath.Join(folder, "apply-*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range applies {
		if rec := r.recoverApply(dir); rec.Action != "" {
			note(rec)
		}
	}
	copies := r.copiesOf(folder)
	names, err := os.ReadDir(copies)
	if err != nil && copies != "" && !errors.Is(err, os.ErrNotExist) {
		return done, err
	}
	dead := r.as(id)
	for _, d := range names {
		rec := dead.reopen(filepath.Join(copies, d.Name())).reclaim(ctx)
		if rec.Action != "" {
			note(rec)
		}
	}
	return done, dead.end(ctx, id)
}

// recoverApply finishes or undoes one Apply. Where that cannot be, each cause is told once: the
// ledger stays for the day on which its tree is there again.
func (r *Repo) recoverApply(dir string) Recovered {
	l, err := readLedger(dir)
	if errors.Is(err, os.ErrNotExist) { // not begun, or ended
		if err = os.RemoveAll(dir); err == nil {
			return Recovered{}
		}
	}
	if err == nil {
		err = r.rootOf(l)
		if errors.Is(err, errCopyGone) { // with all that was done in it
			if err = os.RemoveAll(dir); err == nil {
				return Recovered{}
			}
		}
	}
	if err != nil {
		if err = fmt.Errorf("roll back by %s: %w", dir, err); told(filepath.Join(dir, ledgerTold), err) {
			return Recovered{}
		}
		return Recovered{Action: Failed, Err: err}
	}
	return l.conclude()
}

// conclude finishes or undoes what an Apply had begun.
func (l *ledger) conclude() Recovered {
	if l.done() {
		if err := l.finish(); err != nil {
			return Recovered{Action: Failed, Err: err}
		}
		return Recovered{Action: Finished}
	}
	others, err := l.rollBack()
	if err != nil {
		return Recovered{Action: Failed, Paths: others, Err: err}
	}
	return Recovered{Action: RolledBack, Paths: others}
}

// clearLedgers finishes or undoes what was left of earlier Applies to a tree. The caller
// holds the lock: none of them is still at work.
func (r *Repo) clearLedgers(t *Tree) error {
	ledgers, err := filepath.Glob(filepath.Join(r.store, "runs", "*", "apply-*", ledgerName))
	if err != nil {
		return err
	}
	for _, path := range ledgers {
		dir := filepath.Dir(path)
		l, err := readLedger(dir)
		if err == nil && r.rootOf(l) == nil && string(l.Root) == t.Root {
			err = l.conclude().Err
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrHalfApplied, err)
		}
	}
	return nil
}

// as is the same repository seen by another run.
func (r *Repo) as(id runID) *Repo {
	return &Repo{
		git: r.git, common: r.common, format: r.format, cache: r.cache, tree: r.tree,
		reclaimTime: r.reclaimTime, id: id, store: r.store, lease: &lock{}, copies: map[string]*Copy{},
	}
}

// reopen describes a copy that another process made.
func (r *Repo) reopen(folder string) *Copy {
	mark, err := os.ReadFile(filepath.Join(folder, copyMark))
	c := r.copyAt(folder, Snapshot{Commit: strings.TrimSpace(string(mark))})
	if !errors.Is(err, os.ErrNotExist) { // else never finished: nothing can have been done in it
		c.doubt = err
	}
	return c
}

// reclaim removes a copy; what it holds is put on a ref first. One that cannot be read
// now, or not in time, stays for the next start, and each cause is told once. An empty
// Action means that there is nothing to tell.
func (c *Copy) reclaim(ctx context.Context) Recovered {
	late := fmt.Errorf("not done after %v", c.repo.reclaimTime)
	own, cancel := context.WithTimeoutCause(ctx, c.repo.reclaimTime, late)
	defer cancel()
	rec, err := c.keepAndRemove(own)
	if err == nil {
		return rec
	}
	if ctx.Err() == nil { // else it was not the copy's fault
		if told(filepath.Join(c.folder, copyTold), err) {
			return Recovered{}
		}
	}
	return Recovered{Name: c.Name, Action: Failed, Folder: c.Root, Err: err}
}

// told reports whether the note says that this failure was told, and notes it. Where
// that cannot be, as on a full disk, it is told again.
func told(note string, failure error) bool {
	text := variable.ReplaceAllString(failure.Error(), "")
	old, err := readPlain(note)
	if err == nil && string(old) == text {
		return true
	}
	_ = writeWhole(note, []byte(text))
	return false
}

// variable is what differs from one try to the next in the words of one failure: names
// of temporary files, ours and git's.
var variable = regexp.MustCompile(`(index|apply)-\d+|tmp_\w+|-new-\d+`)

func (c *Copy) keepAndRemove(ctx context.Context) (Recovered, error) {
	if c.doubt != nil {
		return Recovered{}, c.doubt
	}
	if c.Base.Commit == "" || c.unwanted {
		_, err := c.Remove(ctx)
		return Recovered{}, err
	}
	ch, err := c.Collect(ctx, "kept from an unfinished run\n")
	if err != nil {
		return Recovered{}, err
	}
	rec := Recovered{Name: c.Name, Action: Removed}
	if !ch.Empty {
		rec.Action = Kept
		if rec.Ref, err = c.repo.Keep(ctx, ch, c.Name); err != nil {
			return Recovered{}, err
		}
	}
	for _, l := range ch.Left {
		rec.Action = Kept
		rec.Paths = append(rec.Paths, l.Path)
	}
	rec.Folder, err = c.Remove(ctx)
	return rec, err
}
