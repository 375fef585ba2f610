package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
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

// Describe tells a person what was left and what became of it, and what can be done; the
// hint may be "".
func (w Recovered) Describe() (text, hint string) {
	text = "a change of run " + w.Session + "/" + w.Run + " that stood half applied"
	if w.Name != "" {
		text = "the copy of writer " + w.Name + " of run " + w.Session + "/" + w.Run
	}
	text += ": " + w.Action
	if w.Err != nil {
		text += ": " + w.Err.Error()
	}
	var hints []string
	if w.Ref != "" {
		hints = append(hints, "see it with: skein worktrees show "+path.Base(w.Ref)+" --run "+w.Session)
	}
	if len(w.Paths) > 0 {
		hints = append(hints, "look at "+strings.Join(w.Paths, ", "))
	}
	if w.Folder != "" {
		hints = append(hints, "files are in "+w.Folder)
	}
	return text, strings.Join(hints, "; ")
}

// reclaimTime is what one copy may take. What a writer left in it must not keep the
// next run from beginning.
const reclaimTime = time.Minute

// Recover rolls back or finishes what runs of dead processes left half applied, and
// reclaims their copies. It is called at the start of a run and may be called at any
// time: runs that live hold their leases. It waits for nobody: while another process
// recovers or applies it does nothing, and what is left then is cleared up at the next
// start, or before this run first writes.
func (r *Repo) Recover(ctx context.Context) ([]Recovered, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ok, err := r.findLocked()
	var done []Recovered
	if err == nil {
		done, err = r.tellStrays()
	}
	if err != nil {
		return done, fmt.Errorf("recover: %w", err)
	}
	if !ok {
		return done, nil
	}
	note := func(d *deadRun, rec Recovered) {
		if rec.Action != "" {
			rec.Session, rec.Run = d.repo.id.session, d.repo.id.run
			done = append(done, rec)
		}
	}
	failed := func(d *deadRun, err error) {
		if err != nil {
			note(d, Recovered{Action: Failed, Err: err})
		}
	}
	var dead []*deadRun
	err = r.locked(func() error {
		names, err := os.ReadDir(filepath.Join(r.store, "runs"))
		if err != nil {
			return err
		}
		for _, name := range names {
			d, err := r.findDead(name)
			if d == nil {
				continue
			}
			dead = append(dead, d)
			if failed(d, err); err == nil {
				failed(d, d.rollBack(ctx, func(rec Recovered) { note(d, rec) }))
			}
		}
		return nil
	})
	defer func() {
		for _, d := range dead {
			d.lease.release()
		}
	}()
	// Nobody need wait while the copies are read: the leases say that this is done.
	for _, d := range dead {
		failed(d, d.reclaim(ctx, func(rec Recovered) { note(d, rec) }))
	}
	if err == nil && len(dead) > 0 {
		err = r.locked(func() error {
			for _, d := range dead {
				failed(d, d.end(ctx))
			}
			return nil
		})
	}
	if err != nil {
		return done, fmt.Errorf("recover: %w", err)
	}
	return done, nil
}

// locked calls f with the lock of the repository, or not at all if that is taken.
func (r *Repo) locked(f func() error) error {
	guard, err := tryLock(filepath.Join(r.store, "lock"))
	if errors.Is(err, errHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer guard.release()
	return f()
}

// A deadRun is one whose process is gone.
type deadRun struct {
	repo   *Repo  // as that run saw it
	folder string // in the store
	lease  *lock  // nil if it could not be taken: then nothing is done
}

// findDead takes the lease of a run; nil if that lives, or if it is no run.
func (r *Repo) findDead(name os.DirEntry) (*deadRun, error) {
	session, run, ok := strings.Cut(name.Name(), "@")
	if !ok || !name.IsDir() {
		return nil, nil
	}
	d := &deadRun{repo: r.as(runID{session, run}), folder: filepath.Join(r.store, "runs", name.Name())}
	var err error
	d.lease, err = tryLock(filepath.Join(d.folder, "lease"))
	if errors.Is(err, errHeld) {
		return nil, nil
	}
	return d, err
}

// rollBack ends what the run had begun to apply.
func (d *deadRun) rollBack(ctx context.Context, note func(Recovered)) error {
	applies, err := glob(d.folder, "apply-*")
	for _, dir := range applies {
		note(d.repo.recoverApply(ctx, dir))
	}
	return err
}

// reclaim removes its copies, with what they hold on a ref.
func (d *deadRun) reclaim(ctx context.Context, note func(Recovered)) error {
	copies := d.repo.copiesOf(d.folder)
	if d.lease == nil || copies == "" {
		return nil
	}
	names, err := os.ReadDir(copies)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		note(d.repo.reopen(filepath.Join(copies, name.Name())).reclaim(ctx))
	}
	return err
}

// end removes the run, if nothing is left of it.
func (d *deadRun) end(ctx context.Context) error {
	if d.lease == nil {
		return nil
	}
	return d.repo.end(ctx, d.repo.id)
}

// recoverApply finishes or undoes one Apply. Where that cannot be, each cause is told once: the
// ledger stays for the day on which its tree is there again.
func (r *Repo) recoverApply(ctx context.Context, dir string) Recovered {
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
	return r.conclude(ctx, l)
}

// conclude finishes or undoes what an Apply had begun.
func (r *Repo) conclude(ctx context.Context, l *ledger) Recovered {
	if copies := r.copiesOf(filepath.Dir(l.dir)); copies != "" && l.Of != "" {
		l.copy = filepath.Join(copies, l.Of)
	}
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
	r.forget(ctx, l.Record)
	return Recovered{Action: RolledBack, Paths: others}
}

// clearLedgers finishes or undoes what was left of earlier Applies to a tree. The caller
// holds the lock: none of them is still at work.
func (r *Repo) clearLedgers(ctx context.Context, t *Tree) error {
	runs, err := glob(filepath.Join(r.store, "runs"), "*")
	if t.copy != nil {
		runs = []string{r.runFolder()} // nobody else applies to it
	}
	for _, run := range runs {
		ledgers, failed := ledgersOf(run)
		err = errors.Join(err, failed)
		for _, dir := range ledgers {
			if failed := r.clearLedger(ctx, t, dir); failed != nil {
				return fmt.Errorf("%w: %w", ErrHalfApplied, failed)
			}
		}
	}
	return err
}

// clearLedger is clearLedgers for one, if it is of the tree.
func (r *Repo) clearLedger(ctx context.Context, t *Tree, dir string) error {
	l, err := readLedger(dir)
	if err != nil {
		return err
	}
	if t.copy != nil {
		if string(l.Tree) != t.name() {
			return nil
		}
		l.Root = bytePath(t.Root) // a copy of layers is where its box shows it
	} else if r.rootOf(l) != nil || string(l.Root) != t.Root {
		return nil
	}
	return r.conclude(ctx, l).Err
}

// as is the same repository seen by another run.
func (r *Repo) as(id runID) *Repo {
	return &Repo{
		git: r.git, common: r.common, format: r.format, cache: r.cache, tree: r.tree,
		reclaimTime: r.reclaimTime, lockTime: r.lockTime, mostPack: r.mostPack, asked: r.asked, id: id, store: r.store, lease: &lock{}, copies: map[string]*Copy{},
	}
}

// reopen describes a copy that another process made.
func (r *Repo) reopen(folder string) *Copy {
	mark, err := os.ReadFile(filepath.Join(folder, copyMark))
	_, fresh := os.Lstat(filepath.Join(folder, copyUpper))
	c := r.copyAt(folder, Snapshot{Commit: strings.TrimSpace(string(mark))}, fresh == nil)
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
	rec = Recovered{Name: c.Name, Action: Failed, Folder: c.Root, Err: err}
	if c.Gone() != nil {
		rec.Folder = ""
	}
	return rec
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
var variable = regexp.MustCompile(`(read|apply)-\d+|tmp_\w+|-new-\d+`)

func (c *Copy) keepAndRemove(ctx context.Context) (Recovered, error) {
	if c.doubt != nil {
		return Recovered{}, c.doubt
	}
	if c.Base.Commit == "" || c.unwanted {
		_, err := c.Remove(ctx)
		return Recovered{}, err
	}
	ch, err := c.Collect(ctx, c.noted())
	if err != nil {
		return Recovered{}, err
	}
	rec := Recovered{Name: c.Name, Action: Removed}
	_, unmerged := os.Lstat(filepath.Join(c.folder, copyDone))
	if !ch.Empty && unmerged != nil {
		rec.Action = Kept
		if rec.Ref, err = c.repo.Keep(ctx, ch, c.Name, "the run ended before it was merged"); err != nil {
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
