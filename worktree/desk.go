package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// A desk is where git reads a tree: a folder with an index of its own, and for a copy a
// [Box] round the calls. What a writer left is no more than read there. New objects go to
// a folder of the desk, and leave it as one pack. Of one that comes out of a box nothing is
// believed: git computes every id anew, and refuses what fsck would.
type desk struct {
	git    *git
	at     place // with the index, and where new objects go
	tree   *Tree
	folder string
	box    Box // nil for the user's tree
}

// deskPrefix is how the folders of desks are named, in the folder of a copy.
const deskPrefix = "read-"

// desk sets a desk up for the tree.
func (t *Tree) desk(ctx context.Context) (*desk, error) {
	d := &desk{git: t.repo.git, tree: t, at: t.at}
	if err := d.setUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", t.Path, err), d.close())
	}
	return d, nil
}

func (d *desk) setUp(ctx context.Context) (err error) {
	t, c := d.tree, d.tree.copy
	if c == nil {
		d.folder = t.repo.next("read")
		err = os.Mkdir(d.folder, 0o700)
	} else if err = c.clear(ctx); err == nil {
		d.folder, err = os.MkdirTemp(c.folder, deskPrefix)
	}
	if err != nil {
		return err
	}
	d.at.index, d.at.objects = filepath.Join(d.folder, "index"), filepath.Join(d.folder, "objects")
	if err := os.MkdirAll(filepath.Join(d.at.objects, "info"), 0o700); err != nil {
		return err
	}
	ours := []byte(quoteAlternate(t.repo.objects()) + "\n")
	if err := os.WriteFile(filepath.Join(d.at.objects, "info", "alternates"), ours, 0o600); err != nil {
		return err
	}
	if c == nil {
		return copyIndexIfAny(t.index, d.at.index)
	}
	if err := c.startIndex(ctx, d.at.index); err != nil {
		return err
	}
	d.box, err = t.repo.openBox(ctx, Reach{
		Scratch: d.folder, Visible: append([]string{t.at.work, t.at.gitDir}, t.repo.borrowed()...),
	})
	if err != nil {
		return fmt.Errorf("open a box: %w", err)
	}
	d.git = d.git.in(d.box)
	return nil
}

// close removes the desk.
func (d *desk) close() error {
	var err error
	if d.box != nil {
		err = d.box.Close()
	}
	if d.folder != "" {
		err = errors.Join(err, removeAll(d.folder))
	}
	return err
}

// startIndex makes the index that reading the copy begins with.
func (c *Copy) startIndex(ctx context.Context, index string) error {
	if !c.layered {
		return copyIndexIfAny(c.tree.index, index)
	}
	if c.layer != nil {
		if err := copyIndex(c.layer.file(layerIndex), index); !missing(err) {
			return err
		}
	}
	// The copy of a dead run, or somebody cleared the cache: its layers are not there any more.
	at := c.tree.at.with(index)
	at.gitDir = c.repo.store
	if _, err := c.repo.git.run(ctx, at, nil, "read-tree", c.Base.Commit); err != nil {
		return err
	}
	return c.repo.hollow(ctx, at)
}

var idRule = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkID refuses what is no id: those out of a box become arguments and file names.
func checkID(id string) error {
	if !idRule.MatchString(id) {
		return fmt.Errorf("%q is no id", id)
	}
	return nil
}

// mostPack bounds what one change brings, in bytes.
const mostPack = 1 << 30

// commit makes a commit of a tree of the desk in our store, as [Repo.commit] does. All of
// it that the commit called held has not is in one pack then. That is also what git found in
// the user's object store, and therefore did not write: the user may delete it.
func (d *desk) commit(ctx context.Context, tree, message, held string, parents ...string) (string, error) {
	r := d.tree.repo
	// By a commit git finds what is new without reading all trees.
	commit, err := r.commitTo(ctx, d.at.objects, tree, message, parents...)
	if err != nil {
		return "", err
	}
	if d.box == nil {
		at := r.ours()
		at.objects = d.at.objects
		_, err = r.packTo(ctx, r.git, at, r.packs(), commit, held)
		return commit, err
	}
	if err := d.takeOver(ctx, commit, held); err != nil {
		return "", fmt.Errorf("take over what is new: %w", err)
	}
	return commit, nil
}

// takeOver takes a pack out of a box.
func (d *desk) takeOver(ctx context.Context, commit, held string) error {
	r, at := d.tree.repo, d.at
	at.config = append(at.config[:len(at.config):len(at.config)], noSync) // the store's copy is what lasts
	id, err := r.packTo(ctx, d.git, at, filepath.Join(d.folder, "pack"), commit, held)
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		return err
	}
	pack, err := plain(filepath.Join(d.folder, "pack-"+id+".pack"))
	if err != nil {
		return err
	}
	defer func() { _ = pack.Close() }()
	_, _, err = r.git.call(ctx, r.ours(), pack, "index-pack", "--strict", "--stdin", fmt.Sprint("--max-input-size=", r.mostPack))
	return err
}
