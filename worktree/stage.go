package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Left is a file that was not taken, and why. Path is relative to the root of the
// working tree, slash-separated, in the bytes git knows it by.
type Left struct{ Path, Reason string }

// Reasons of [Left].
const (
	LeftUnreadable  = "unreadable"
	LeftTooLarge    = "over 10 MiB"
	LeftNested      = "nested repository"
	LeftSubmodule   = "files of a submodule"
	LeftUncommitted = "uncommitted changes in a submodule"
	LeftSecret      = "looks like a secret"
	LeftClosed      = "other programs obey it"
	LeftName        = "name not allowed in a repository"
	LeftUnsafe      = "not a file that git can be let read"
	LeftLineEnds    = "other line ends, as git would write them"
)

// tooLarge is the size beyond which a file does not go into objects unasked.
const tooLarge = 10 << 20

// rules say what staging leaves out.
type rules struct {
	changedToo bool // tooLarge counts for files git knows too, not for new ones only
	secrets    bool // new files that look like secrets
	closed     func(path string) bool

	repositories bool // see [staging.withoutRepositories]
}

// staging is one pass that brings a private index up to date with the working tree.
//
// Not git add -A: that stops at the first file it cannot read, takes nested
// repositories, asks the configuration of submodules, and tells nothing by name.
type staging struct {
	*desk
	rules rules
	upper *upper // of an overlay copy
	left  []Left
	// sparse are the paths that are deliberately not checked out.
	sparse   []string
	along    map[string]bool // files that came along into a copy, in lower case
	replaced []string        // submodules in whose place a writer put a file: git is not asked about them
	known    map[string]bool // the paths in the index to begin with
	stored   map[string]bool // files that are in the index as git stores them: see filter.go
}

// stage brings the index of the desk up to date and returns the id of its tree.
func (d *desk) stage(ctx context.Context, r rules) (*staging, string, error) {
	s := &staging{desk: d, rules: r}
	t := d.tree
	if t.copy != nil && t.copy.layered {
		var err error
		if s.upper, err = readUpper(t.at.work); err != nil {
			return nil, "", err
		}
	}
	if t.copy != nil {
		names, err := t.copy.along()
		if err != nil {
			return nil, "", err
		}
		s.along = map[string]bool{}
		for _, name := range names {
			s.along[strings.ToLower(name)] = true
		}
	}
	if err := s.flags(ctx); err != nil {
		return nil, "", err
	}
	files, err := s.filtered(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := s.add(ctx, files); err != nil {
		return nil, "", err
	}
	gone, files, err := s.compare(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := s.update(ctx, gone, "--force-remove"); err != nil {
		return nil, "", err
	}
	if err := s.add(ctx, files); err != nil {
		return nil, "", err
	}
	if err := s.strange(ctx); err != nil {
		return nil, "", err
	}
	slices.SortFunc(s.left, func(a, b Left) int { return cmp.Compare(a.Path, b.Path) })
	s.left = slices.Compact(s.left)
	id, err := s.git.line(ctx, s.at, "write-tree")
	if err == nil {
		err = checkID(id)
	}
	return s, id, err
}

// flags refuses unmerged entries and clears the flags that hide changes from git, and
// takes what belongs to the harness out of the index.
func (s *staging) flags(ctx context.Context) error {
	out, err := s.git.run(ctx, s.at, nil, "ls-files", "-z", "-v", "-s")
	if err != nil {
		return err
	}
	var assumed, skipped, removed []string
	s.known = map[string]bool{}
	for _, entry := range fields(out) {
		info, name, ok := strings.Cut(entry, "\t")
		if !ok || len(info) < 8 {
			return fmt.Errorf("git ls-files: entry %q", entry)
		}
		tag, mode, stage := info[0], info[2:8], info[len(info)-1]
		if stage != '0' {
			return &UnmergedError{Path: name}
		}
		if ours(name) {
			removed = append(removed, name)
			continue
		}
		s.known[name] = true
		if tag >= 'a' && tag <= 'z' {
			assumed = append(assumed, name)
		}
		if tag == 'S' || tag == 's' {
			switch s.find(name) {
			case above:
				skipped = append(skipped, name)
			case nowhere:
				if !s.closed(name) {
					removed = append(removed, name)
				}
			case below:
				if s.upper == nil {
					s.sparse = append(s.sparse, name)
				}
			}
		}
		if mode == "160000" && tag != 'S' && tag != 's' {
			switch info, err := os.Lstat(s.tree.stored(name)); {
			case s.tree.populated(name):
				s.left = append(s.left, Left{name, LeftSubmodule})
			case s.tree.copy == nil: // git tells
			case errors.Is(err, fs.ErrNotExist):
				removed = append(removed, name)
			case err == nil && !info.IsDir():
				s.replaced = append(s.replaced, name)
			}
		}
	}
	return errors.Join(
		s.update(ctx, assumed, "--no-assume-unchanged"),
		s.update(ctx, skipped, "--no-skip-worktree"),
		s.update(ctx, removed, "--force-remove"),
		s.overlook(ctx, s.known),
	)
}

// closed reports whether a change of the file is left out, and notes it.
func (s *staging) closed(name string) bool {
	if s.rules.closed == nil || !s.rules.closed(strings.TrimPrefix(name, s.tree.Prefix)) {
		return false
	}
	s.left = append(s.left, Left{name, LeftClosed})
	return true
}

// find says where a file that counts as not checked out is.
func (s *staging) find(name string) whereabouts {
	if s.upper != nil {
		return s.upper.find(name)
	}
	if _, err := os.Lstat(s.tree.stored(name)); err != nil {
		return below
	}
	return above
}

// compare lists what differs from the index: files that are gone, and files to add. Git
// walks the tree twice for that, at the same time.
func (s *staging) compare(ctx context.Context) (gone, files []string, err error) {
	var known, others []byte
	var warnings string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		known, err = s.git.run(gctx, s.at, nil, "diff-files", "-z", "--name-status", "--no-renames", "--ignore-submodules="+s.tree.submodules)
		return err
	})
	g.Go(func() (err error) {
		others, warnings, err = s.git.both(gctx, s.at, nil, "ls-files", "-z", "--others", "--exclude-standard")
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	for pair := range slices.Chunk(fields(known), 2) {
		if len(pair) < 2 {
			return nil, nil, fmt.Errorf("git diff-files: odd answer %q", known)
		}
		switch {
		case s.closed(pair[1]):
		case pair[0] == "D":
			gone = append(gone, pair[1])
		case s.stored[pair[1]]: // changed, and named
		case s.takes(pair[1], s.rules.changedToo, false):
			files = append(files, pair[1])
		}
	}
	files = append(files, s.untracked(others, warnings)...)
	for _, name := range s.replaced {
		if !s.closed(name) && s.takes(name, true, s.rules.secrets) {
			files = append(files, name)
		}
	}
	more, err := s.forced(ctx, files)
	if err != nil {
		return nil, nil, err
	}
	return gone, s.withoutRepositories(append(files, more...)), s.sameButCase(ctx, others)
}

// untracked lists new files that are not ignored, as git told.
func (s *staging) untracked(out []byte, warnings string) (files []string) {
	for line := range strings.Lines(warnings) {
		if name, ok := strings.CutPrefix(line, "warning: could not open directory '"); ok {
			s.left = append(s.left, Left{strings.TrimSuffix(name[:strings.LastIndex(name, "'")+1], "/'"), LeftUnreadable})
		}
	}
	for _, name := range fields(out) {
		switch folder, nested := strings.CutSuffix(name, "/"); {
		case ours(name):
		case s.closed(folder):
		case nested:
			s.left = append(s.left, Left{folder, LeftNested})
		case s.cameAlong(name):
		case s.takes(name, true, s.rules.secrets):
			files = append(files, name)
		}
	}
	return files
}

// takes reports whether the file goes into the index; it notes the reason if not.
func (s *staging) takes(name string, limit, secrets bool) bool {
	info, err := os.Lstat(s.tree.stored(name))
	reason := ""
	switch {
	case err != nil: // gone meanwhile: staging it removes it
	case !info.Mode().IsRegular():
	case limit && info.Size() > tooLarge:
		reason = LeftTooLarge
	case secrets && secretName(path.Base(name)):
		reason = LeftSecret
	default:
		// Without waiting: the name may have become a FIFO since.
		f, err := os.OpenFile(s.tree.stored(name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrPermission) {
			reason = LeftUnreadable
		}
		if err == nil {
			_ = f.Close()
		}
	}
	if reason != "" {
		s.left = append(s.left, Left{name, reason})
	}
	return reason == ""
}

// update runs update-index over paths.
func (s *staging) update(ctx context.Context, paths []string, flags ...string) error {
	_, err := s.updateAt(ctx, s.at, paths, flags...)
	return err
}

func (s *staging) updateAt(ctx context.Context, at place, paths []string, flags ...string) (string, error) {
	if len(paths) == 0 {
		return "", nil
	}
	args := append([]string{"update-index", "-z"}, flags...)
	_, warnings, err := s.git.both(ctx, at, list(paths), append(args, "--stdin")...)
	return warnings, err
}

// refusals are what git says of a file that is not to be had, or not to be had as an
// object. All else, such as a full disk, is a failure: leaving files out because of it
// would lose work and call it a change.
var refusals = regexp.MustCompile(`^(open\(.*\): Permission denied` +
	`|.*: can only add regular files, symbolic links or git-directories` +
	`|.*: unsupported file type` +
	`|BOM is (required|prohibited) in '.*' if encoded as .*` +
	`|failed to encode '.*' from .* to .*` +
	`|.*: clean filter '.*' failed` +
	`|'.*' does not have a commit checked out` +
	`|'.*' is beyond a symbolic link)$`)

// add stages files as they are now. Where git refuses one, it halves the list until it
// knows the file that is to blame, names it and takes the rest.
func (s *staging) add(ctx context.Context, paths []string) error {
	at := s.at
	if !s.rules.changedToo { // git is to tell of line ends that will come back as others
		at.config = append(at.config[:len(at.config):len(at.config)], "core.safecrlf=warn")
	}
	warnings, err := s.updateAt(ctx, at, paths, "--add", "--remove", "--replace")
	if e := (*gitError)(nil); errors.As(err, &e) && e.exit > 0 && refusals.MatchString(e.reason()) {
		if len(paths) == 1 {
			s.left = append(s.left, Left{paths[0], e.reason()})
			return nil
		}
		half := len(paths) / 2
		if err := s.add(ctx, paths[:half]); err != nil {
			return err
		}
		return s.add(ctx, paths[half:])
	}
	for line := range strings.Lines(warnings) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "Ignoring path "); ok {
			s.left = append(s.left, Left{name, LeftName})
		}
		if name, ok := strings.CutPrefix(line, "warning: in the working copy of '"); ok && !s.rules.changedToo {
			if i := strings.LastIndex(name, "', "); i > 0 {
				s.left = append(s.left, Left{name[:i], LeftLineEnds})
			}
		}
	}
	return err
}

// file is the absolute path of a file of the tree.
func (t *Tree) file(name string) string { return t.Root + "/" + name }

// stored is where git reads that file: of an overlay copy in the upper.
func (t *Tree) stored(name string) string { return t.at.work + "/" + name }

// populated reports whether the folder of a submodule holds anything.
func (t *Tree) populated(name string) bool {
	// Without waiting: a writer may have put a FIFO there.
	d, err := os.OpenFile(t.stored(name), syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }()
	_, err = d.Readdirnames(1)
	return err == nil
}

// ours reports whether a path belongs to the harness: it is never in a snapshot.
func ours(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return strings.EqualFold(part, ".skein") || strings.HasPrefix(part, siblingPrefix)
	})
}

// secretName reports whether a file of this name probably holds a secret.
func secretName(base string) bool {
	base = strings.ToLower(base)
	for _, sample := range []string{".example", ".sample", ".template", ".dist", ".pub"} {
		if strings.HasSuffix(base, sample) {
			return false
		}
	}
	for _, pattern := range []string{
		".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
		"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pgpass", ".htpasswd", ".git-credentials",
	} {
		if ok, _ := path.Match(pattern, base); ok { // the patterns are well-formed
			return true
		}
	}
	return false
}

// copyIndexIfAny is copyIndex for a tree of git's own: an absent index is an empty one.
func copyIndexIfAny(from, to string) error {
	if err := copyIndex(from, to); !missing(err) {
		return err
	}
	return nil
}

// copyIndex copies an index file with its time: git tells by that time which entries
// may have been changed in the same second, and would miss those in a newer file.
func copyIndex(from, to string) error {
	src, err := openPlain(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	err = errors.Join(err, dst.Close())
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}
