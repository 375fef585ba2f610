package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kinds of a [Conflict].
const (
	KindContent         = "content"
	KindAddAdd          = "add/add"
	KindModifyDelete    = "modify/delete"
	KindRenameEdit      = "rename/edit"
	KindRenameRename    = "rename/rename"
	KindRenameDelete    = "rename/delete"
	KindDirectoryRename = "directory rename"
	KindFileDirectory   = "file/directory"
	KindBinary          = "binary"
	KindMode            = "mode"
	KindSymlink         = "symlink"
	KindSubmodule       = "submodule"
	KindCase            = "case"       // two names that this file system does not tell apart
	KindInTheWay        = "in the way" // something untracked or ignored stands there
	KindMeanwhile       = "edited meanwhile"
	KindSparse          = "not checked out"
	KindFilter          = "below a filter" // what is merged is not what stands in the tree: see [LeftFilter]
)

// A Conflict is one file that does not merge.
type Conflict struct {
	Path, Kind string

	// Text shows it: the places with both sides between markers, for a file that has
	// them, else what git says. "" for what is about the tree and not about a merge.
	Text string
}

// A ConflictError reports a change that does not merge or cannot be applied. Nothing
// of it was.
type ConflictError struct {
	Conflicts []Conflict // never empty, sorted by path

	// Marked is a commit on top of what was merged onto, whose files hold the merge with
	// markers where it conflicts: somebody can solve it in a copy of it, see [Repo.Copy].
	// It lives as long as the run. "" where the conflict is not one of a merge.
	Marked string

	// Aside are the files of Marked that git gave a name of its own making, since two things
	// would have had the same one. What solves the conflict leaves none of them.
	Aside []string
}

func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	return fmt.Sprintf("%d conflicting paths, first %s (%s)", len(e.Conflicts), first.Path, first.Kind)
}

// Hint says what to do next.
func (e *ConflictError) Hint() string {
	return "nothing of this change was taken; make the change again on top of the present files, or merge the kept change by hand"
}

// conflict makes the error of a list, nil for an empty one.
func conflict(list []Conflict) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
	})
	list = slices.CompactFunc(list, func(a, b Conflict) bool { return a.Path == b.Path && a.Kind == b.Kind })
	return &ConflictError{Conflicts: list}
}

// one is the error of a single conflict about the tree.
func one(path, kind string) error { return conflict([]Conflict{{Path: path, Kind: kind}}) }

// labels name the two sides of a merge in markers and messages. They are names of refs.
type labels struct{ ours, theirs string }

// explain makes the error that tells all of a merge that conflicts.
func (r *Repo) explain(ctx context.Context, out, base, ours, theirs string, by labels) error {
	m, err := parseMerge(out)
	if err != nil {
		return fmt.Errorf("git merge-tree: %w", err)
	}
	mine, err := r.changes(ctx, base, ours)
	if err != nil {
		return err
	}
	others, err := r.changes(ctx, base, theirs)
	if err != nil {
		return err
	}
	m.changes = map[string]change{}
	for _, c := range slices.Concat(mine, others) {
		m.changes[c.path] = c
	}
	list, err := r.conflicts(ctx, m, by)
	if err != nil {
		return err
	}
	e := &ConflictError{}
	if err := conflict(list); !errors.As(err, &e) {
		return fmt.Errorf("git merge-tree: conflict without a path: %q", out)
	}
	for _, path := range m.paths() {
		if m.plain(path, by) != path {
			e.Aside = append(e.Aside, path)
		}
	}
	if e.Marked, err = r.commit(ctx, m.tree, "conflicts\n", ours); err != nil {
		return err
	}
	if err := r.pack(ctx, e.Marked, ours, theirs); err != nil {
		return err
	}
	return e
}

// conflicts names and shows what a merge says.
func (r *Repo) conflicts(ctx context.Context, m merging, by labels) (list []Conflict, err error) {
	const atOnce = 16 // each may be large
	for paths := range slices.Chunk(m.paths(), atOnce) {
		kinds := map[string]string{}
		var marked []string
		for _, path := range paths {
			kind := m.sides[path].kind(m.words[path])
			if c, changed := m.changes[path]; kind == KindContent && (!changed || c.old == absent) {
				kind = KindRenameEdit // git lists the base's side under the new name
			}
			if kinds[path] = kind; kind == KindContent || kind == KindAddAdd || kind == KindRenameEdit {
				marked = append(marked, path)
			}
		}
		texts, err := r.readObjects(ctx, m.tree, "blob", marked)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			c := Conflict{Path: m.plain(path, by), Kind: kinds[path], Text: m.texts[path]}
			if text := hunks(string(texts[path]), by); text != "" {
				c.Text = text
			}
			list = append(list, c)
		}
	}
	if len(list) == 0 { // a conflict about no file, such as a split of a renamed folder
		for path, words := range m.words {
			list = append(list, Conflict{Path: path, Kind: (&sides{}).kind(words), Text: m.texts[path]})
		}
	}
	return list, nil
}

// plain is the path of a file that git moved aside, path~label, as it was. One of such a name
// that somebody changed is what it is called.
func (m merging) plain(path string, by labels) string {
	if _, changed := m.changes[path]; changed {
		return path
	}
	for _, label := range []string{by.ours, by.theirs} {
		if i := strings.LastIndex(path, "~"+label); i > 0 && numbered.MatchString(path[i+1+len(label):]) {
			return path[:i]
		}
	}
	return path
}

var numbered = regexp.MustCompile(`^(_\d+)?$`)

// hunkBytes is how much is shown of one file.
const hunkBytes = 16 << 10

// hunks cuts the places between markers out of a file, with the lines around them.
func hunks(text string, by labels) string {
	const around = 3
	lines := strings.SplitAfter(text, "\n")
	begins := func(i int) bool { return marks(lines[i], "<<<<<<< ", by.ours) }
	var b strings.Builder
	shown := 0
	for i := 0; i < len(lines) && b.Len() < hunkBytes; i++ {
		if !begins(i) {
			continue
		}
		end := i
		for end < len(lines)-1 && !marks(lines[end], ">>>>>>> ", by.theirs) {
			end++
		}
		from := max(shown, i-around)
		if from > shown || shown == 0 {
			fmt.Fprintf(&b, "@@ line %d @@\n", from+1)
		}
		shown = min(end+1+around, len(lines))
		for j := i + 1; j < shown; j++ { // the next one tells of its own surroundings
			if j > end && begins(j) {
				shown = j
			}
		}
		b.WriteString(strings.Join(lines[from:shown], ""))
		i = end
	}
	if b.Len() > hunkBytes {
		return b.String()[:hunkBytes] + "\n[…]\n"
	}
	return b.String()
}

// marks reports whether a line is a marker of git's; behind the name of a side the name
// of a file may follow.
func marks(line, mark, label string) bool {
	rest, ok := strings.CutPrefix(line, mark+label)
	return ok && (strings.TrimRight(rest, "\r\n") == "" || rest[0] == ':')
}

// A merging is what merge-tree said of a merge that conflicts.
type merging struct {
	tree  string
	sides map[string]*sides
	words map[string][]string // what kinds of conflict git calls it
	texts map[string]string   // and in sentences

	changes map[string]change // what either side did, since the base; of a path that both changed one of the two
}

// sides are the entries of one path: of the base, of ours, of theirs.
type sides [4]struct{ mode, id string }

func (m merging) paths() []string {
	var paths []string
	for path := range m.sides {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// parseMerge reads the answer of merge-tree -z: a tree, then "mode id stage\tpath" for
// each side of each conflicting path, an empty field, then messages made of a count, that
// many paths, a type and a text.
func parseMerge(out string) (merging, error) {
	in := strings.Split(out, "\x00")
	m := merging{tree: in[0], sides: map[string]*sides{}, words: map[string][]string{}, texts: map[string]string{}}
	in = in[1:]
	for len(in) > 0 && in[0] != "" {
		info, path, ok := strings.Cut(in[0], "\t")
		parts := strings.Fields(info)
		if !ok || len(parts) != 3 || len(parts[2]) != 1 || parts[2] < "1" || parts[2] > "3" {
			return m, fmt.Errorf("entry %q", in[0])
		}
		if m.sides[path] == nil {
			m.sides[path] = &sides{}
		}
		side := &m.sides[path][parts[2][0]-'0']
		side.mode, side.id = parts[0], parts[1]
		in = in[1:]
	}
	for in = in[min(1, len(in)):]; len(in) > 3; {
		n, err := strconv.Atoi(in[0])
		if err != nil || n < 0 || len(in) < n+3 {
			return m, fmt.Errorf("message %q", in[0])
		}
		if word, ok := strings.CutPrefix(in[n+1], "CONFLICT"); ok { // some have a space behind it
			word = strings.Trim(word, " ()")
			for _, path := range in[1 : n+1] {
				m.words[path] = append(m.words[path], word)
				m.texts[path] += strings.TrimSpace(in[n+2]) + "\n"
			}
		}
		in = in[n+3:]
	}
	if len(m.sides)+len(m.words) == 0 {
		return m, fmt.Errorf("conflict without a path: %q", out)
	}
	return m, nil
}

// special are the words of git's that decide, first ones first, whatever else it says of a
// file, and what we call them.
var special = []struct{ word, kind string }{
	{"directory rename", KindDirectoryRename}, // begins or ends several
	{"binary", KindBinary},
	{"submodule", KindSubmodule},
	{"distinct modes", KindSymlink}, // a file here, a link there
	{"file/directory", KindFileDirectory},
	{"rename/rename", KindRenameRename},
	{"rename/delete", KindRenameDelete},
	{"rename involved in collision", KindAddAdd},
}

// kind names a conflict by git's words or else by the sides there are.
func (s *sides) kind(words []string) string {
	base, a, b := s[1], s[2], s[3]
	is := func(mode string) bool { return base.mode == mode || a.mode == mode || b.mode == mode }
	if is("160000") {
		return KindSubmodule
	}
	for _, known := range special {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, known.word) }) {
			return known.kind
		}
	}
	switch {
	case is("120000"):
		return KindSymlink
	case a.mode == "" || b.mode == "":
		return KindModifyDelete
	case a.id == b.id && a.mode != b.mode:
		return KindMode
	case base.mode == "":
		return KindAddAdd
	default:
		return KindContent
	}
}
