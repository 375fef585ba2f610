// Package worktree gives every writer its own checkout of a repository and brings
// the changes back.
//
// A [Tree] is a directory under git: the user's, or the one inside a [Copy]. It is
// frozen as a [Snapshot], copied, the copy's changes are collected as a [Change],
// merged in memory and applied to the tree again. The user's index, stash, branches
// and reflogs stay as they are; in their object store nothing is written and in their
// refs only one below refs/skein. What we write goes to a git directory of ours, the
// store. A crash leaves copies and half-applied changes behind; [Repo.Recover] finds
// them by their leases.
//
// Non-goals: other version control systems; sharing one tree between two writers.
package worktree

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configures [Open]. The zero value works.
type Options struct {
	// Cache is the folder below which copies live, never inside the repository;
	// "" is the folder skein in [os.UserCacheDir] or, where there is none outside the
	// repository that can be made, one of the user's own in [os.TempDir].
	Cache string

	// Session and Run name the refs, refs/skein/<session>/<run>/…; letters, digits,
	// dot, dash and underscore. "" is a random session and run 1.
	Session, Run string

	// Backend is how copies are made: [Fresh], [Overlay] or, also as "", [Auto], which is
	// by overlay where that can be. If it is Overlay and that cannot be, the first snapshot
	// fails with a [BackendError].
	Backend string

	// Layers tells by its error why boxes cannot show the layers of a copy as one tree. It
	// is asked once, before the first snapshot; nil: there are no boxes.
	Layers func(context.Context) error

	// Box opens a box in which git reads what the writer of one copy left. Nil, or a nil Box
	// without an error: there are no boxes, and git reads it where this program runs.
	Box func(context.Context, Reach) (Box, error)

	// Closed says of a path, slash-separated and relative to the folder that was opened, that
	// no change of a writer's brings it: other programs obey it. Nil: there is no such path.
	Closed func(path string) bool

	// Fault is a seam for tests: it is called before and after each git call and each
	// file replacement, with the name of that point, and its error ends the operation
	// there. It is called for one point at a time. Nil in production.
	Fault func(point string) error
}

// ErrUnavailable is wrapped by the errors of [Open] that mean: there is no isolation
// by git here (no git, git too old, no repository). The caller works in place. Where
// that would not be safe there is a [LayoutError] instead.
var ErrUnavailable = errors.New("no worktrees here")

// unavailable is an [ErrUnavailable] that says why and nothing else.
type unavailable struct{ cause error }

func (e unavailable) Error() string        { return e.cause.Error() }
func (e unavailable) Unwrap() error        { return e.cause }
func (e unavailable) Is(target error) bool { return target == ErrUnavailable }

// A Repo is one run's access to a repository. Its methods may be called from several
// goroutines; the trees of different copies are independent of each other.
type Repo struct {
	git    *git
	common string // git directory shared by all worktrees of the repository
	format string // object format, sha1 or sha256
	cache  string
	shared bool // the cache lies in a folder in which others may make files
	id     runID
	tree   *Tree
	asked  Options

	reclaimTime time.Duration // see the constants
	lockTime    time.Duration
	mostPack    int64

	mu     sync.Mutex
	store  string // our git directory; "" before the first snapshot made it
	lease  *lock
	home   string // see [Repo.homeOf]; set with the lease
	head   string // commit held by the run's ref in the user's repository
	bases  int
	serial int
	copies map[string]*Copy

	backend, backendWhy string // see [Repo.Backend]

	layers map[string]*layer // that this run holds, by their trees; see [Repo.use]
	newest *layer            // the last of them that a copy asked for

	layering chan struct{} // has room for one: who holds it makes layers

	filtersOff map[string]bool // filters that do not run, see [Repo.disarm]

	dates     sync.Map // commit id to seconds since 1970, as text; see [Repo.commit]
	steps     sync.Map // commit id, or the ids of two commits, to the [step] that made it; see [Repo.since]
	configure sync.Mutex
	user      *settings // what copies take over of the user's configuration; nil until read
}

// A runID names a run in refs and folders.
type runID struct{ session, run string }

func (id runID) folder() string { return id.session + "@" + id.run }
func (id runID) ref(name string) string {
	return "refs/skein/" + id.session + "/" + id.run + "/" + name
}

// oldest is the oldest git that has merge-tree --write-tree.
var oldest = [2]int{2, 38}

// Open finds the repository that holds dir. It writes nothing: the first snapshot
// does. An error that wraps [ErrUnavailable] says which case it is; after any other, a
// [LayoutError] above all, nobody should work here.
func Open(ctx context.Context, dir string, o Options) (*Repo, error) {
	// A repository may hold anything, a FIFO for its configuration too.
	const limit = 30 * time.Second
	return open(ctx, dir, o, limit)
}

// open is Open where git must have answered within limit.
func open(ctx context.Context, dir string, o Options, limit time.Duration) (*Repo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer after %v", limit))
	defer cancel()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	r := &Repo{
		asked: o, reclaimTime: reclaimTime, lockTime: lockTime, mostPack: mostPack, copies: map[string]*Copy{},
		layering: make(chan struct{}, 1), layers: map[string]*layer{},
	}
	if r.id, err = newRunID(o); err == nil {
		err = checkBackend(o.Backend)
	}
	if err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	if r.git, err = findGit(ctx, oneAtATime(o.Fault)); err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	if err := r.locate(ctx, dir); err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	if r.tree.at.disarm, err = r.disarm(ctx); err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	if err = r.findCache(o.Cache); err != nil {
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	return r, nil
}

// Tree is the user's working tree.
func (r *Repo) Tree() *Tree { return r.tree }

// locate finds the repository of dir, and refuses one that lies oddly.
func (r *Repo) locate(ctx context.Context, dir string) error {
	at := place{dir: dir, user: true}
	err := r.ask(ctx, at)
	if !errors.Is(err, ErrUnavailable) {
		return err
	}
	// Git does not look at what others own, or at a bare one, if told so. A caller who
	// works in place must know all the same how it lies.
	at.config = []string{"safe.directory=*", "safe.bareRepository=all"}
	if odd := (*LayoutError)(nil); errors.As(r.ask(ctx, at), &odd) {
		return odd
	}
	return err
}

// ask asks git where the repository is.
func (r *Repo) ask(ctx context.Context, at place) error {
	var inside, gitDir, root, prefix, index string
	questions := []struct {
		to   *string
		args []string
	}{
		{&inside, []string{"--is-inside-work-tree"}},
		{&root, []string{"--show-toplevel"}},
		{&prefix, []string{"--show-prefix"}},
		{&gitDir, []string{"--absolute-git-dir"}},
		{&r.common, []string{"--git-common-dir"}},
		{&index, []string{"--git-path", "index"}},
		{&r.format, []string{"--show-object-format"}},
	}
	ask := []string{"rev-parse", "--path-format=absolute"}
	all := slices.Clone(ask)
	for _, q := range questions {
		all = append(all, q.args...)
	}
	// One call answers everything, a line each, unless there is no working tree to answer
	// for, or a path that holds a newline.
	text, err := r.git.line(ctx, at, all...)
	answers := strings.Split(text, "\n")
	whole := err == nil && len(answers) == len(questions)
	for i, q := range questions {
		if whole {
			*q.to = answers[i]
			continue
		}
		*q.to, err = r.git.line(ctx, at, append(slices.Clone(ask), q.args...)...)
		switch {
		case i == 0 && err != nil:
			if failed := (*gitError)(nil); errors.As(err, &failed) && strings.Contains(failed.stderr, "not a git repository (or any ") {
				err = errors.New("not a git repository")
			}
			return unavailable{err}
		case i == 0 && inside != "true":
			return errNoTree
		case err != nil:
			return err
		}
	}
	if inside != "true" {
		return errNoTree
	}
	r.tree = &Tree{
		Root: root, Path: at.dir, Prefix: prefix, repo: r, index: index, submodules: "dirty",
		at: place{dir: root, gitDir: gitDir, work: root, user: true},
	}
	return r.checkLayout()
}

// findGit finds a git that is new enough.
func findGit(ctx context.Context, fault func(string) error) (*git, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, unavailable{fmt.Errorf("no git program: %w", err)}
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, unavailable{err}
	}
	g := &git{program: program, box: bare{environment(os.Environ())}, fault: fault}
	text, err := g.line(ctx, place{}, "version")
	if err != nil {
		return nil, unavailable{err}
	}
	version := regexp.MustCompile(`(\d+)\.(\d+)[.\w]*`).FindStringSubmatch(text)
	if version == nil {
		return nil, unavailable{fmt.Errorf("git of unknown version %q", text)}
	}
	major, _ := strconv.Atoi(version[1]) // digits only, see the pattern
	minor, _ := strconv.Atoi(version[2])
	if major < oldest[0] || major == oldest[0] && minor < oldest[1] {
		return nil, unavailable{fmt.Errorf("git %s found, %d.%d or newer needed", version[0], oldest[0], oldest[1])}
	}
	g.version = version[0]
	return g, nil
}

// nameRule is what git takes in a ref and every file system in a name.
var nameRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// checkName refuses names that cannot be part of a ref and a folder.
func checkName(what, name string) error {
	if !nameRule.MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") {
		return fmt.Errorf("%s %q: not a name for a ref", what, name)
	}
	return nil
}

func newRunID(o Options) (runID, error) {
	id := runID{o.Session, o.Run}
	if id.session == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		id.session = hex.EncodeToString(b[:])
	}
	if id.run == "" {
		id.run = "1"
	}
	return id, errors.Join(checkName("session", id.session), checkName("run", id.run))
}
