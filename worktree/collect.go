package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Change is what a writer did to its copy, as a commit whose parent is the snapshot.
type Change struct {
	Name         string // of the copy
	Base, Commit string
	Files        []FileStat
	Left         []Left // files that were not taken: the change is not whole
	Empty        bool   // the commit's files are those of the snapshot

	changes []change // all of it, nothing taken for renamed; nil where git has to be asked
}

// A FileStat is one changed file.
type FileStat struct {
	Path           string
	From           string // of a renamed file, else ""
	Status         string // A added, M modified, D deleted, R renamed, T other type
	Added, Removed int    // lines; -1 for binary files
}

// Outside lists the paths of the change, old names of renamed files too, that do not lie
// in a folder of the tree; prefix is as in [Tree], and outside "" lies nothing.
func (c Change) Outside(prefix string) []string {
	var paths []string
	for _, f := range c.Files {
		for _, name := range []string{f.From, f.Path} {
			if name != "" && !strings.HasPrefix(name, prefix) {
				paths = append(paths, name)
			}
		}
	}
	return paths
}

// Collect commits what the copy holds now, whether its writer committed or not: the
// difference is to the snapshot, never to the writer's HEAD. Nothing the writer put
// into the tree or its git directory is run or obeyed, save ignore files and built-in
// attributes. No process may work in the copy while it is read.
func (c *Copy) Collect(ctx context.Context, message string) (Change, error) {
	ch, err := c.collect(ctx, message)
	if err != nil {
		return Change{}, fmt.Errorf("collect %s: %w", c.Name, err)
	}
	return ch, nil
}

// Note says what the message of the copy's change is if the run ends before [Copy.Collect]: who
// finds the change then knows what it was for.
func (c *Copy) Note(message string) error {
	if err := os.WriteFile(filepath.Join(c.folder, copyWhat), []byte(message), 0o600); err != nil {
		return fmt.Errorf("note what copy %s is for: %w", c.Name, err)
	}
	return nil
}

// noted is that message. One that git would refuse keeps nothing from being kept.
func (c *Copy) noted() string {
	text, err := readPlain(filepath.Join(c.folder, copyWhat))
	if err != nil || len(bytes.TrimSpace(text)) == 0 || bytes.ContainsRune(text, 0) {
		return "kept from an unfinished run\n"
	}
	return string(text)
}

func (c *Copy) collect(ctx context.Context, message string) (Change, error) {
	if err := cmp.Or(c.Gone(), gone(c.repo.store)); err != nil {
		return Change{}, err
	}
	f, err := c.tree.freeze(ctx, rules{changedToo: true, secrets: true, closed: c.repo.asked.Closed, repositories: true}, message, c.Base.Commit, c.Base.Commit)
	if err != nil {
		return Change{}, err
	}
	if err := f.close(); err != nil {
		return Change{}, err
	}
	ch := Change{Name: c.Name, Base: c.Base.Commit, Commit: f.commit}
	ch.Left = c.judge(f.left)
	c.left = ch.Left
	ch.Files, ch.changes, err = c.repo.statAll(ctx, ch.Base, ch.Commit)
	ch.Empty = len(ch.Files) == 0
	return ch, err
}

// Files lists the files in which two commits or trees differ, renames found.
func (r *Repo) Files(ctx context.Context, from, to string) ([]FileStat, error) {
	files, _, err := r.statAll(ctx, from, to)
	return files, err
}

// statAll is Files, and the same for us, with renamed files as deleted and added ones.
func (r *Repo) statAll(ctx context.Context, from, to string) ([]FileStat, []change, error) {
	out, err := r.git.run(ctx, r.ours(), nil, "diff-tree", "-r", "-z", "-M", "--raw", "--numstat", from, to)
	if err != nil {
		return nil, nil, err
	}
	files, changes, err := parseStat(fields(out))
	if err != nil {
		return nil, nil, fmt.Errorf("git diff-tree: %w", err)
	}
	return files, changes, nil
}

var errShort = errors.New("answer ends early")

// parseStat reads the records of --raw, then in the same order those of --numstat.
func parseStat(in []string) (files []FileStat, changes []change, err error) {
	for len(in) > 0 && strings.HasPrefix(in[0], ":") {
		info := strings.Fields(in[0][1:])
		if len(in) < 2 || len(info) != 5 {
			return nil, nil, errShort
		}
		f := FileStat{Status: info[4][:1], Path: in[1]}
		c := change{in[1], info[0], info[1], info[2], info[3]}
		in = in[2:]
		if f.Status == "R" || f.Status == "C" {
			if len(in) == 0 {
				return nil, nil, errShort
			}
			f.From, f.Path, in = f.Path, in[0], in[1:]
			none := strings.Repeat("0", len(c.newID))
			if f.Status == "R" {
				changes = append(changes, change{f.From, c.old, absent, c.oldID, none})
			}
			c = change{f.Path, absent, c.new, none, c.newID}
		}
		changes = append(changes, c)
		files = append(files, f)
	}
	for i := range files {
		if len(in) == 0 {
			return nil, nil, errShort
		}
		counts := strings.SplitN(in[0], "\t", 3)
		in = in[1:]
		if files[i].From != "" { // then both paths follow
			if len(in) < 2 {
				return nil, nil, errShort
			}
			in = in[2:]
		}
		if len(counts) < 3 {
			return nil, nil, errShort
		}
		files[i].Added, files[i].Removed = lines(counts[0]), lines(counts[1])
	}
	return files, changes, nil
}

// lines is a count of --numstat, which has a dash for binary files.
func lines(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
