package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A mason makes one layer. It works in a folder of its own, which gets its name when all
// is there: what a crash leaves is no layer, and swept away.
type mason struct {
	repo     *Repo
	tree     string
	settings settings
	kind     string // end of the names of layers that are checked out in this way

	dir string // under construction
	at  place  // with a git directory for the checkout
}

// Beyond these a tree gets a base of its own instead of a delta.
const (
	deltaPaths = 2000
	deltaBytes = 64 << 20
)

// make makes a delta over the nearest base, or a base. The caller holds the lock of the
// folder with the layers.
func (m *mason) make(ctx context.Context) (*layer, error) {
	below, changes, err := m.nearest(ctx)
	if err != nil {
		return nil, err
	}
	name := m.tree + m.kind
	if below != nil {
		name += "+" + filepath.Base(below.dir)
	}
	path := filepath.Join(m.repo.layersFolder(), name)
	if _, err := os.Lstat(path); err == nil { // or it would have been found, or removed
		return nil, errNoLayer("somebody changed files of the layer that the tree needs, and another run uses it")
	}
	l, err := m.build(ctx, below, changes, path)
	if err != nil && below != nil {
		below.lease.release()
	}
	return l, err
}

func (m *mason) build(ctx context.Context, below *layer, changes []change, name string) (l *layer, err error) {
	if m.dir, err = os.MkdirTemp(filepath.Dir(name), underConstruction); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeAll(m.dir))
		}
	}()
	git := filepath.Join(m.dir, "git")
	work := filepath.Join(m.dir, layerTree)
	m.at = place{dir: work, gitDir: git, work: work, index: filepath.Join(m.dir, layerIndex), objects: m.repo.objects()}
	err = makeGitDir(git, map[string]string{
		"HEAD":            "ref: refs/heads/none\n",
		"config":          m.settings.text(m.repo.format),
		"info/attributes": m.repo.text("info/attributes"),
	})
	if err == nil {
		err = os.Mkdir(work, 0o755) //nolint:gosec // its folder is closed; in a box others may have to read it
	}
	if err != nil {
		return nil, err
	}
	if below == nil {
		err = m.base(ctx)
	} else {
		err = m.delta(ctx, below, changes)
	}
	if err == nil {
		err = m.indexes(ctx)
	}
	if err == nil {
		err = os.RemoveAll(git)
	}
	if err == nil {
		err = seal(m.dir)
	}
	if err == nil {
		err = m.repo.git.point("before layer")
	}
	if err == nil {
		err = os.Rename(m.dir, name)
	}
	if err != nil {
		return nil, err
	}
	if l = leaseLayer(name); l == nil {
		return nil, fmt.Errorf("lease layer %s: it is gone", name)
	}
	l.below = below
	return l, m.repo.git.point("after layer")
}

func (m *mason) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return m.repo.git.run(ctx, m.at, stdin, args...)
}

// base checks all files out.
func (m *mason) base(ctx context.Context) error {
	if _, err := m.run(ctx, nil, "read-tree", m.tree); err != nil {
		return err
	}
	at := m.at
	at.config = append(at.config, "checkout.workers=0") // as many as there are processors
	if _, err := m.repo.git.run(ctx, at, nil, "checkout-index", "-a", "-u", "-q"); err != nil {
		return err
	}
	return os.Mkdir(filepath.Join(m.at.work, ".git"), 0o700)
}

// delta checks the files out in which the tree differs from the base, and hides those
// that it does not have.
func (m *mason) delta(ctx context.Context, below *layer, changes []change) error {
	shared, err := below.sharedIndex()
	if err == nil {
		err = copyIndex(shared, m.at.index)
	}
	if err != nil {
		return err
	}
	// Keeps what the index knows of the base's files.
	if _, err := m.run(ctx, nil, "read-tree", "-i", "-m", m.tree); err != nil {
		return err
	}
	var files, gone []string
	for _, c := range changes {
		if c.new == absent {
			gone = append(gone, c.path)
		} else {
			files = append(files, c.path)
		}
	}
	if len(files) > 0 {
		if _, err := m.run(ctx, list(files), "checkout-index", "-u", "-q", "-z", "--stdin"); err != nil {
			return err
		}
	}
	return m.hide(ctx, gone)
}

// hide puts whiteouts where the base has files, or whole folders, that the tree has not.
func (m *mason) hide(ctx context.Context, gone []string) error {
	if len(gone) == 0 {
		return nil
	}
	out, err := m.run(ctx, nil, "ls-tree", "-r", "-d", "-z", "--name-only", m.tree)
	if err != nil {
		return err
	}
	folders := map[string]bool{".": true}
	for _, name := range fields(out) {
		folders[name] = true
	}
	for _, name := range gone {
		if folders[name] {
			continue // a folder took the place of the file
		}
		for !folders[path.Dir(name)] {
			name = path.Dir(name)
		}
		at := filepath.Join(m.at.work, name)
		if _, err := os.Lstat(at); err == nil {
			continue // hidden already, or a file took the place of the folder
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as git makes them
			return err
		}
		if err := whiteout(at); err != nil {
			return err
		}
	}
	return nil
}

// indexes makes the two indexes of the layer out of the one that the checkout wrote.
func (m *mason) indexes(ctx context.Context) error {
	// Git takes a file for changed meanwhile if it is not older than the index. Nobody
	// changes these.
	later := time.Now().Add(2 * time.Second)
	if err := os.Chtimes(m.at.index, later, later); err != nil {
		return err
	}
	split := m.at.with(filepath.Join(m.dir, layerSplit))
	split.config = append(split.config, "core.splitIndex=true")
	if err := copyIndex(m.at.index, split.index); err != nil {
		return err
	}
	if _, err := m.repo.git.run(ctx, split, nil, "update-index", "--split-index"); err != nil {
		return err
	}
	shared := filepath.Join(m.dir, layerShared)
	if err := os.Mkdir(shared, 0o755); err != nil { //nolint:gosec // its folder is closed; in a box others may have to read it
		return err
	}
	names, err := glob(m.at.gitDir, sharedIndex+"*")
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("git update-index: %d shared indexes", len(names))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(names[0], filepath.Join(shared, filepath.Base(names[0]))); err != nil {
		return err
	}
	return m.repo.hollow(ctx, m.at)
}

// sharedIndex begins the name of the part of an index that split indexes have in common.
const sharedIndex = "sharedindex."

// sharedIndex is the file with all of the index that writers share.
func (l *layer) sharedIndex() (string, error) {
	names, err := glob(l.file(layerShared), sharedIndex+"*")
	if err == nil && len(names) != 1 {
		err = fmt.Errorf("layer %s: %d shared indexes", l.dir, len(names))
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// hollow marks every entry of an index as not checked out.
func (r *Repo) hollow(ctx context.Context, at place) error {
	out, err := r.git.run(ctx, at, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	if _, err := r.git.run(ctx, at, out, "update-index", "-z", "--skip-worktree", "--stdin"); err != nil {
		return err
	}
	_, err = r.git.run(ctx, at, nil, "write-tree") // notes the ids of folders, which marking forgot
	return err
}

// nearest finds the base that differs least from the tree, and leases it: nil if the
// tree needs one of its own.
func (m *mason) nearest(ctx context.Context) (*layer, []change, error) {
	out, err := m.repo.git.run(ctx, m.repo.ours(), nil, "ls-tree", "-r", "-z", m.tree)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range fields(out) {
		if strings.HasPrefix(entry, "160000 ") {
			return nil, nil, errNoLayer("the tree has submodules")
		}
	}
	names, err := os.ReadDir(m.repo.layersFolder())
	if err != nil {
		return nil, nil, err
	}
	var best []change
	var base string
	for _, d := range names {
		tree, ok := strings.CutSuffix(d.Name(), m.kind)
		if !ok || strings.Contains(tree, "+") {
			continue
		}
		changes, err := m.repo.changes(ctx, tree, m.tree)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil || len(changes) > deltaPaths || base != "" && len(changes) >= len(best) {
			continue // or objects of that tree are not there any more
		}
		// Attributes decide about the bytes of files that did not change themselves.
		if slices.ContainsFunc(changes, func(c change) bool { return path.Base(c.path) == ".gitattributes" }) {
			continue
		}
		base, best = d.Name(), changes
	}
	if base == "" {
		return nil, nil, nil
	}
	small, err := m.small(ctx, best)
	if err != nil || !small {
		return nil, nil, err
	}
	return trustedLayer(filepath.Join(m.repo.layersFolder(), base)), best, nil
}

// small reports whether the new files are not too large for a delta.
func (m *mason) small(ctx context.Context, changes []change) (bool, error) {
	var ask strings.Builder
	for _, c := range changes {
		if c.new != absent {
			ask.WriteString(c.newID + "\n")
		}
	}
	out, err := m.repo.git.run(ctx, m.repo.ours(), []byte(ask.String()), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return false, err
	}
	total := 0
	for line := range strings.Lines(string(out)) {
		size := 0
		if _, err := fmt.Sscan(line, &size); err != nil {
			return false, fmt.Errorf("git cat-file: %q: %w", line, err)
		}
		total += size
	}
	return total <= deltaBytes, nil
}
