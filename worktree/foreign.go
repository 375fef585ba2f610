package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A repository's own files are not the user's word: whoever could write into a folder
// without git, a boxed command too, may have made it one with git. So nothing that is
// configured in the repository itself runs, and what stands in place of our store is
// brought into the form that we give it. Global and system configuration are the user's.

// programs are the keys that name programs which git would run in calls of ours, and
// those that make a failure of them count.
const programs = `^(filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|diff\..*\.(command|textconv)|diff\.external)$`

// disarm lists what has to be set so that the repository's own configuration runs
// nothing: each such key as the user has it for all repositories, or empty. A filter of
// which the repository says something else is off as a whole: it is neither the user's nor
// what made the files of the tree.
func (r *Repo) disarm(ctx context.Context) ([][2]string, error) {
	out, err := r.git.run(ctx, r.tree.at, nil, "config", "-z", "--show-scope", "--includes", "--get-regexp",
		programs+`|^core\.(excludesfile|attributesfile)$`)
	if err != nil && exitOf(err) != 1 { // 1: none is set
		return nil, err
	}
	values := map[string]string{}
	local := map[string]bool{}
	own := map[string]string{}
	for pair := range slices.Chunk(fields(out), 2) {
		if len(pair) < 2 {
			return nil, fmt.Errorf("git config: odd answer %q", out)
		}
		key, value, ok := strings.Cut(pair[1], "\n")
		if !ok {
			value = "true" // a key without a value
		}
		foreign := pair[0] == "local" || pair[0] == "worktree"
		switch {
		case strings.HasPrefix(key, "core."):
			values[key], local[key] = r.rulesFile(value, foreign)
		case foreign:
			local[key], own[key] = true, value
		default:
			values[key] = value
		}
	}
	r.filtersOff = filtersOff(values, own)
	for name := range r.filtersOff {
		for _, what := range []string{"clean", "smudge", "process", "required"} {
			key := "filter." + name + "." + what
			local[key] = true
			delete(values, key)
		}
	}
	var set [][2]string
	for key, differs := range local {
		if !differs {
			continue
		}
		value := values[key]
		if value == "" && strings.HasSuffix(key, ".required") {
			value = "false"
		}
		set = append(set, [2]string{key, value})
	}
	slices.SortFunc(set, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return set, nil
}

// rulesFile is the name to use for a file with rules, and whether it is another one than is
// configured: git would hang on what the repository names, or get lost in it, or in a call
// that does not start at the root of the tree not find it.
func (r *Repo) rulesFile(name string, foreign bool) (use string, other bool) {
	use = name
	if name != "" && !filepath.IsAbs(name) && name[0] != '~' && !strings.HasPrefix(name, "%(") {
		use = r.tree.file(name)
	}
	info, err := os.Stat(use)
	if foreign && err == nil && (!info.Mode().IsRegular() || info.Size() > largeUsers) {
		use = "/dev/null"
	}
	return use, use != name
}

// secureStore brings the store into the form that we give it. What of it is a link is
// refused: it leads to where we have no business.
func (r *Repo) secureStore(dir string) error {
	for _, sub := range []string{"", "runs", "objects", "objects/info", "objects/pack", "refs", "info"} {
		info, err := os.Lstat(filepath.Join(dir, sub))
		if errors.Is(err, fs.ErrNotExist) && sub != "" {
			err = os.Mkdir(filepath.Join(dir, sub), 0o700)
			if err == nil {
				continue
			}
		}
		if err == nil && !info.IsDir() {
			err = errors.New("not a folder")
		}
		if err != nil {
			return fmt.Errorf("store %s is not ours: %q: %w", dir, sub, err)
		}
	}
	for name, text := range r.storeFiles(dir) {
		old, err := readPlain(filepath.Join(dir, name))
		if err == nil && string(old) == text {
			continue
		}
		if err := writeWhole(filepath.Join(dir, name), []byte(text)); err != nil {
			return err
		}
	}
	for _, name := range []string{"commondir", "config.worktree", "info/attributes", "info/grafts"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store %s is not ours: %w", dir, err)
		}
	}
	return nil
}
