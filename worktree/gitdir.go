package worktree

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// settings are what a copy's git directories take over of the user's configuration: an
// allow-list, since the rest (filters, hooks, aliases, remotes, keys) can run programs.
type settings struct {
	name, email string
	core        []string // lines of the section core
	ignore      string   // core.excludesFile
	attributes  string   // core.attributesFile
	ignoreCase  bool     // core.ignoreCase: the file system takes a for A
}

// settings reads them, once for a run. A failure is not remembered: it may be the end of
// one caller's context.
func (r *Repo) settings(ctx context.Context) (settings, error) {
	r.configure.Lock()
	defer r.configure.Unlock()
	if r.user == nil {
		s, err := r.readSettings(ctx)
		if err != nil {
			return s, err
		}
		r.user = &s
	}
	return *r.user, nil
}

func (r *Repo) readSettings(ctx context.Context) (settings, error) {
	var s settings
	paths, err := r.config(ctx, "--type=path", `^core\.(excludesfile|attributesfile)$`)
	if err != nil {
		return s, err
	}
	values, err := r.config(ctx, "", `^(user\.(name|email)|core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs))$`)
	if err != nil {
		return s, err
	}
	for _, kv := range append(paths, values...) {
		switch key, value := kv[0], kv[1]; key {
		case "user.name":
			s.name = value
		case "user.email":
			s.email = value
		case "core.excludesfile":
			s.ignore = value
		case "core.attributesfile":
			s.attributes = value
		default:
			if key == "core.ignorecase" {
				s.ignoreCase = slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
			}
			s.core = append(s.core, strings.TrimPrefix(key, "core.")+" = "+quoteConfig(value))
		}
	}
	return s, nil
}

// config lists the keys that fit a pattern, in lower case, with their values; of a key that
// is set several times the last counts, and comes last.
func (r *Repo) config(ctx context.Context, kind, pattern string) ([][2]string, error) {
	args := []string{"config", "-z"}
	if kind != "" {
		args = append(args, kind)
	}
	out, err := r.git.run(ctx, r.tree.at, nil, append(args, "--get-regexp", pattern)...)
	if err != nil && exitOf(err) != 1 { // 1: none is set
		return nil, err
	}
	var list [][2]string
	for _, item := range fields(out) {
		key, value, ok := strings.Cut(item, "\n")
		if !ok {
			value = "true" // a key without a value
		}
		list = append(list, [2]string{key, value})
	}
	return list, nil
}

// rules are the texts of the user's own ignore and attribute files; "" without them.
func (s settings) rules() (ignore, attributes string) {
	home := os.Getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(os.Getenv("HOME"), ".config")
	}
	read := func(name, usual string) string {
		text, err := readPlain(cmp.Or(name, filepath.Join(home, "git", usual)))
		if err != nil {
			return ""
		}
		return string(text)
	}
	return read(s.ignore, "ignore"), read(s.attributes, "attributes")
}

// text is a configuration file with the settings.
func (s settings) text(format string) string {
	lines := append(slices.Clone(s.core), "bare = false")
	for key, value := range map[string]string{"excludesFile": s.ignore, "attributesFile": s.attributes} {
		if value != "" {
			lines = append(lines, key+" = "+quoteConfig(value))
		}
	}
	slices.Sort(lines[len(s.core):])
	text := coreConfig(format, lines...) + "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
	if s.name != "" || s.email != "" {
		text += "[user]\n\tname = " + quoteConfig(s.name) + "\n\temail = " + quoteConfig(s.email) + "\n"
	}
	return text
}

func quoteConfig(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

// makeOurs makes the git directory that we read the copy with. It lies outside the
// writer's reach, and its configuration names no program.
func (c *Copy) makeOurs(s settings) error {
	dir := c.tree.at.gitDir
	// Rules of the user's come along: in a box there is no home to find them in.
	ignore, attributes := s.rules()
	s.ignore, s.attributes = filepath.Join(dir, "info", "ignore"), filepath.Join(dir, "info", "user-attributes")
	return makeGitDir(dir, map[string]string{
		"HEAD":                    c.Base.Commit + "\n",
		"config":                  s.text(c.repo.format),
		"info/ignore":             ignore,
		"info/user-attributes":    attributes,
		"objects/info/alternates": quoteAlternate(c.repo.objects()) + "\n",
		"info/exclude":            c.repo.text("info/exclude"),
		"info/attributes":         c.repo.text("info/attributes"),
		"shallow":                 c.repo.text("shallow"),
	})
}

// commonDir is the folder inside the writer's git directory with objects, refs and
// configuration. They do not lie in .git itself, so that .git/objects is free: a box
// that shows the copy at the path of the user's checkout shows the user's objects, an
// alternate, there.
const commonDir = "own"

// makePrivate makes the writer's git directory save its index: HEAD detached at the
// snapshot, all refs of the user's, objects of its own.
func (c *Copy) makePrivate(ctx context.Context, s settings) error {
	refs, err := c.repo.git.run(ctx, c.repo.tree.at, nil, "for-each-ref", "--format=%(objectname) %(refname)",
		"refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return err
	}
	alternates := make([]string, len(c.Objects))
	for i, dir := range c.Objects {
		alternates[i] = quoteAlternate(dir) + "\n"
	}
	// Rules of the user's come along: a box does not show their home. Git reads them from the
	// root of the tree, wherever that is seen.
	ignore, attributes := s.rules()
	s.ignore, s.attributes = "", ""
	if ignore != "" {
		s.ignore = ".git/" + commonDir + "/info/ignore"
	}
	if attributes != "" {
		s.attributes = ".git/" + commonDir + "/info/user-attributes"
	}
	own := filepath.Join(c.GitDir, commonDir)
	err = makeGitDir(own, map[string]string{
		"HEAD":                    c.Base.Commit + "\n", // no branch counts as checked out here
		"config":                  s.text(c.repo.format),
		"packed-refs":             string(refs),
		"info/ignore":             ignore,
		"info/user-attributes":    attributes,
		"objects/info/alternates": strings.Join(alternates, ""),
		"info/exclude":            c.repo.text("info/exclude"),
		"info/attributes":         c.repo.text("info/attributes"),
		"shallow":                 c.repo.text("shallow"),
	})
	if err != nil {
		return err
	}
	// Places for a box to show the user's objects and the store's.
	for _, sub := range []string{"objects", "skein/objects"} {
		if err := os.MkdirAll(filepath.Join(c.GitDir, sub), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(c.GitDir, "commondir"), []byte(commonDir+"\n"), 0o600),
		os.WriteFile(filepath.Join(c.GitDir, "HEAD"), []byte(c.Base.Commit+"\n"), 0o600),
	)
}

// text is a small file of the user's git directory, "" without it.
func (r *Repo) text(name string) string {
	b, err := readPlain(filepath.Join(r.common, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// borrowed lists the object folders a copy needs: ours, the user's, and those that the
// user's borrow from.
func (r *Repo) borrowed() []string {
	dirs := []string{r.objects(), filepath.Join(r.common, "objects")}
	for i := 1; i < len(dirs) && i < 16; i++ {
		text, err := readPlain(filepath.Join(dirs[i], "info", "alternates"))
		if err != nil {
			continue
		}
		for dir := range strings.SplitSeq(string(text), "\n") {
			if strings.HasPrefix(dir, `"`) {
				if plain, err := strconv.Unquote(dir); err == nil {
					dir = plain
				}
			}
			if dir == "" || dir[0] == '#' {
				continue
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(dirs[i], dir)
			}
			// A box shows these: whoever wrote the file must not choose other folders.
			if filepath.Base(dir) == "objects" && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}
