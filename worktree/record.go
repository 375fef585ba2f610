package worktree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What an Apply does to the user's tree is recorded in our store: two commits, before
// and after, that hold the files it touched and no others, and so need nothing of the
// user's. A ref, refs/skein/<session>/<run>/applied/<time>, is on the second one, whose
// parent is the first, and whose message is the name of the tree that was changed: linked
// worktrees share a store. It is made between the ledger and the first change, and goes
// when that is rolled back.
//
// Undo is then one more Apply: of the first commit, with the second as its base. What
// the user did since is kept by the same three-way rule, and the same ledger secures it.

// recordRef is what the ref of a record looks like.
var recordRef = regexp.MustCompile(`^refs/skein/[\w.-]+/[\w.-]+/applied/\d+$`)

// recordKind is where the refs of records lie among those of a run. The name of each is
// the nanosecond in which it was made.
const recordKind = "applied/"

// record makes the record of an Apply, if it is to have one.
func (r *Repo) record(ctx context.Context, l *ledger, changes []change) error {
	if l.Record == "" {
		return nil
	}
	var in bytes.Buffer
	tree := recordTree(string(l.Tree))
	for i, side := range []func(change) (mode, id string){change.before, change.after} {
		fmt.Fprintf(&in, "commit %s\nmark :%d\ncommitter skein <skein@localhost> 1000000000 +0000\ndata %d\n%s\n", l.Record, i+1, len(tree), tree)
		if i > 0 {
			fmt.Fprintf(&in, "from :%d\ndeleteall\n", i)
		}
		for _, c := range changes {
			if mode, id := side(c); mode != absent {
				fmt.Fprintf(&in, "M %s %s %s\n", mode, id, quotePath(c.path))
			}
		}
		in.WriteByte('\n')
	}
	at := r.ours().durable()
	at.config = append(at.config, "fastimport.unpackLimit=0")
	if _, err := r.git.run(ctx, at, in.Bytes(), "fast-import", "--quiet"); err != nil {
		return err
	}
	return r.pack(ctx, l.Record)
}

// recordTree is how a record names a tree: one line, whatever the name is.
func recordTree(name string) string { return strconv.QuoteToASCII(name) }

// forget removes a record, of something that did not come to be. The user is served
// better by a record too much than by an error.
func (r *Repo) forget(ctx context.Context, ref string) {
	if ref != "" {
		_, _ = r.git.run(context.WithoutCancel(ctx), r.ours(), nil, "update-ref", "-d", ref)
	}
}

// quotePath writes a path for fast-import.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// A RunChange is what a run changed in the user's tree.
type RunChange struct {
	Session, Run string
	When         time.Time // of its last change
	Files        []FileStat
	From, To     string // the files it touched before and after: [Repo.Diff] of both shows it
}

// RunDiff tells what a run changed in this tree of the user's: each file from how it was before
// the first change of the run that touched it to how it was after the last one, edits
// of the user's own between those two included. Run is as in [Repo.Kept]; "" is the run
// that changed the tree last. A [NoRunError] means that it changed nothing, or that this
// is forgotten: see [Repo.GC].
func (r *Repo) RunDiff(ctx context.Context, run string) (RunChange, error) {
	c, err := r.runDiff(ctx, run)
	if err != nil {
		return RunChange{}, fmt.Errorf("diff of a run: %w", err)
	}
	return c, nil
}

func (r *Repo) runDiff(ctx context.Context, run string) (RunChange, error) {
	none := &NoRunError{run, "changed nothing in this tree"}
	if run == "" {
		none.What = "changed anything in this tree"
	}
	if ok, err := r.find(); !ok && err != nil {
		return RunChange{}, err
	} else if !ok {
		return RunChange{}, none
	}
	list, err := r.records(ctx)
	if err != nil {
		return RunChange{}, err
	}
	list = slices.DeleteFunc(list, func(a appliedRecord) bool { return !a.id.is(run) || a.tree != recordTree(r.tree.name()) })
	if len(list) == 0 {
		return RunChange{}, none
	}
	last := list[len(list)-1]
	list = slices.DeleteFunc(list, func(a appliedRecord) bool { return a.id != last.id })
	c := RunChange{Session: last.id.session, Run: last.id.run, When: last.when}
	all := map[string]change{}
	for _, a := range list {
		changes, err := r.changes(ctx, a.commit+"^", a.commit)
		if err != nil {
			return RunChange{}, err
		}
		for _, next := range changes {
			if first, ok := all[next.path]; ok {
				next.old, next.oldID = first.old, first.oldID
			}
			all[next.path] = next
		}
	}
	if c.From, err = r.treeOf(ctx, all, change.before); err == nil {
		c.To, err = r.treeOf(ctx, all, change.after)
	}
	if err == nil {
		c.Files, err = r.Files(ctx, c.From, c.To)
	}
	return c, err
}

// treeOf makes a tree of one side of changes.
func (r *Repo) treeOf(ctx context.Context, changes map[string]change, side func(change) (mode, id string)) (string, error) {
	dir, err := os.MkdirTemp("", "skein-diff-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at := r.ours().with(filepath.Join(dir, "index"))
	var in bytes.Buffer
	for path, c := range changes {
		if mode, id := side(c); mode != absent {
			fmt.Fprintf(&in, "%s %s\t%s\x00", mode, id, path)
		}
	}
	if _, err := r.git.run(ctx, at, in.Bytes(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return r.git.line(ctx, at, "write-tree")
}

// An appliedRecord is a record as it is found again.
type appliedRecord struct {
	id     runID
	ref    string
	commit string
	tree   string // see recordTree
	when   time.Time
}

// records lists the records of all runs, oldest first.
func (r *Repo) records(ctx context.Context) ([]appliedRecord, error) {
	refs, err := r.refs(ctx, recordKind, "%(objectname)%00%(contents:subject)")
	if err != nil {
		return nil, err
	}
	var list []appliedRecord
	for _, ref := range refs {
		nanos, err := strconv.ParseInt(ref.name, 10, 64)
		if err != nil {
			continue // none that we made
		}
		a := appliedRecord{id: ref.id, ref: ref.id.ref(recordKind + ref.name), when: time.Unix(0, nanos)}
		if ref.err == nil { // else it is of no tree, and only grows old
			a.commit, a.tree = ref.fields[0], ref.fields[1]
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b appliedRecord) int { return a.when.Compare(b.when) })
	return list, nil
}
