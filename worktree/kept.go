package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A KeptChange is one that was not merged. A ref in our git directory holds it until it is
// merged, dropped, or older than [Repo.GC] lets it be.
type KeptChange struct {
	Session, Run string
	Name         string // the writer's ordinal, such as "0.2"
	Ref          string
	Commit       string // the change, and
	Base         string // the snapshot it was made on, its parent: [Repo.Diff] of both shows it
	When         time.Time
	Why          string // the reason for which it was not merged
	Title        string // first line of the message it was collected with
	Files        []FileStat
	Left         string // folder with the files that were left out of it, "" if there are none
	Err          error  // why it cannot be read: then nothing but its names and Left is known
}

// Keep puts a ref on a change, refs/skein/<session>/<run>/kept/<name> in our git
// directory: it outlives the run. Where that name is taken by another change a number
// follows it. Why is one line. The copy that it was collected from, if it is still there,
// counts as done from then on.
func (r *Repo) Keep(ctx context.Context, ch Change, name, why string) (ref string, err error) {
	if err := checkName("change", name); err != nil {
		return "", fmt.Errorf("keep change: %w", err)
	}
	err = r.begin(ctx)
	if err == nil {
		err = gone(r.store)
	}
	if err != nil {
		return "", fmt.Errorf("keep change %s: %w", name, err)
	}
	// A tag: the commit itself depends on nothing but its content, the time and the
	// reason are of the keeping.
	tag := fmt.Sprintf("object %s\ntype commit\ntag kept\ntagger skein <skein@localhost> %d +0000\n\n%s\n",
		ch.Commit, time.Now().Unix(), strings.Join(strings.Fields(why), " "))
	out, err := r.git.run(ctx, r.ours().durable(), []byte(tag), "mktag")
	if err != nil {
		return "", fmt.Errorf("keep change %s: %w", name, err)
	}
	id := strings.TrimSpace(string(out))
	for n := 1; ; n++ {
		ref := r.id.ref("kept/" + name)
		if n > 1 {
			ref += fmt.Sprint("-", n)
		}
		same, err := r.keeps(ctx, ref, ch)
		switch {
		case err == nil && !same:
			continue
		case exitOf(err) == 1:
			_, err = r.git.run(ctx, r.ours().durable(), nil, "update-ref", ref, id, "")
		}
		if err != nil {
			return "", fmt.Errorf("keep change %s: %w", name, err)
		}
		if ch.Name != "" {
			_ = markDone(filepath.Join(r.copiesFolder(), ch.Name)) // without it the same is found here again
		}
		return ref, nil
	}
}

// keeps reports whether a ref keeps these files on this base: a run that was killed may have
// kept them with other words. An error with exit status 1 means that there is no such ref.
func (r *Repo) keeps(ctx context.Context, ref string, ch Change) (bool, error) {
	old, err := r.git.line(ctx, r.ours(), "rev-parse", "-q", "--verify", ref+"^{commit}")
	if err != nil || old == ch.Commit {
		return err == nil, err
	}
	out, err := r.git.line(ctx, r.ours(), "rev-parse", old+"^{tree}", old+"^", ch.Commit+"^{tree}", ch.Commit+"^")
	if exitOf(err) > 0 {
		return false, nil // what is on the ref is broken
	}
	ids := strings.Fields(out)
	return err == nil && len(ids) == 4 && ids[0] == ids[2] && ids[1] == ids[3], err
}

// A NoRunError says that there is nothing of the run that was asked for.
type NoRunError struct{ Run, What string }

func (e *NoRunError) Error() string {
	if e.Run == "" {
		return "no run has " + e.What
	}
	return fmt.Sprintf("run %s has %s", e.Run, e.What)
}

// Hint says what to do next.
func (e *NoRunError) Hint() string { return "skein worktrees list shows what there is" }

// Kept lists what is kept in the repository, that of the newest run first, of one run in
// the order of the writers. Run chooses one, by the id of its session or as
// session/run; "" takes all. Anybody may call it at any time; it changes nothing.
func (r *Repo) Kept(ctx context.Context, run string) ([]KeptChange, error) {
	list, err := r.kept(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("list kept changes: %w", err)
	}
	return list, nil
}

func (r *Repo) kept(ctx context.Context, run string) ([]KeptChange, error) {
	if ok, err := r.find(); !ok {
		return nil, err
	}
	refs, err := r.refs(ctx, "kept/", "%(*objectname)%00%(*parent)%00%(*contents:subject)%00%(taggerdate:unix)%00%(contents:subject)")
	if err != nil {
		return nil, err
	}
	var list []KeptChange
	newest := map[runID]int64{}
	for _, ref := range refs {
		if !ref.id.is(run) {
			continue
		}
		k := KeptChange{Session: ref.id.session, Run: ref.id.run, Name: ref.name, Ref: ref.id.ref("kept/" + ref.name)}
		k.Err = ref.err
		if k.Err == nil {
			k.Err = r.readKept(ctx, &k, ref.fields)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if k.Err == nil {
			newest[ref.id] = max(newest[ref.id], k.When.Unix())
		}
		k.Left = r.leftOf(ref.id, k.Name)
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b KeptChange) int {
		x, y := runID{a.Session, a.Run}, runID{b.Session, b.Run}
		return cmp.Or(
			cmp.Compare(newest[y], newest[x]), cmp.Compare(y.session, x.session), cmp.Compare(y.run, x.run), compareNames(a.Name, b.Name))
	})
	return list, nil
}

// readKept fills in what a kept change's ref is on.
func (r *Repo) readKept(ctx context.Context, k *KeptChange, fields []string) error {
	seconds, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return fmt.Errorf("%s is on no tag of ours: date %q", k.Ref, fields[3])
	}
	files, err := r.Files(ctx, fields[1], fields[0])
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", k.Ref, err)
	}
	k.Commit, k.Base, k.Title, k.Why = fields[0], fields[1], fields[2], fields[4]
	k.When, k.Files = time.Unix(seconds, 0), files
	return nil
}

// MergeKept merges a kept change three-way onto the user's tree as it is now and drops
// its ref. A [ConflictError] or another error means that nothing was changed and the
// ref stands; see [Tree.Apply]. [Repo.RunDiff] counts it to the run that it is of.
func (r *Repo) MergeKept(ctx context.Context, k KeptChange) (Applied, error) {
	id, err := k.id()
	if err != nil {
		return Applied{}, err
	}
	ctx, done := r.tree.guard(ctx)
	defer done()
	err = k.Err
	var a Applied
	if err == nil {
		a, err = r.tree.apply(ctx, k.Base, k.Commit, nil, id)
	}
	if err != nil {
		return Applied{}, fmt.Errorf("merge kept change %s of %s: %w", k.Name, k.Session, err)
	}
	return a, r.Drop(ctx, k)
}

// Drop forgets a kept change: its ref goes, and with the last of a run that has ended
// all refs that the run still had. The files that were left out of it stay.
func (r *Repo) Drop(ctx context.Context, k KeptChange) error {
	id, err := k.id()
	if err != nil {
		return err
	}
	if ok, err := r.find(); !ok {
		return errors.Join(err, &NoRunError{k.Session, "nothing kept"})
	}
	if _, err = r.git.run(ctx, r.ours(), nil, "update-ref", "-d", k.Ref); err == nil {
		err = r.release(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("drop kept change %s of %s: %w", k.Name, k.Session, err)
	}
	return nil
}

// id is the run of a kept change, whose fields anybody may have set.
func (k KeptChange) id() (runID, error) {
	id := runID{k.Session, k.Run}
	if err := errors.Join(checkName("session", k.Session), checkName("run", k.Run), checkName("change", k.Name)); err != nil {
		return id, err
	}
	if k.Ref != id.ref("kept/"+k.Name) {
		return id, fmt.Errorf("%q is not the ref of a kept change", k.Ref)
	}
	return id, nil
}

// release removes what a run that has ended needs no more.
func (r *Repo) release(ctx context.Context, id runID) error {
	if id == r.id {
		return nil // Close does
	}
	return r.locked(func() error {
		lease, err := tryLock(filepath.Join(r.store, "runs", id.folder(), "lease"))
		switch {
		case errors.Is(err, errHeld):
			return nil // it lives, and does so at its end
		case err == nil:
			defer lease.release()
		case !missing(err):
			return err
		}
		return r.end(ctx, id)
	})
}

// leftOf is the folder with what was left out of a change of that name.
func (r *Repo) leftOf(id runID, name string) string {
	runs, _ := glob(filepath.Join(r.cache, "left"), "*@"+id.folder()) // what cannot be read is not there
	for _, run := range slices.Backward(runs) {
		folder := filepath.Join(run, name)
		if info, err := os.Lstat(folder); err == nil && info.IsDir() {
			return folder
		}
	}
	return ""
}

// compareNames compares ordinals by their numbers: 0.2 is before 0.10.
func compareNames(a, b string) int {
	x, y := strings.FieldsFunc(a, notDigit), strings.FieldsFunc(b, notDigit)
	return cmp.Or(slices.CompareFunc(x, y, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}), cmp.Compare(a, b))
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
