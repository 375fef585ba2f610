package worktree

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// graft carries a change over to a commit that it is apart from, and gives the tree that
// this makes, with all of its folders that are not the commit's. Git would write each of
// them to a file of its own, and that takes most of the time of a merge.
func (r *Repo) graft(ctx context.Context, onto string, changes []change) (tree object, all []object, err error) {
	names := foldersOf(changes)
	folders, err := r.readFolders(ctx, onto, names)
	if err != nil {
		return object{}, nil, err
	}
	for _, c := range changes {
		dir, base := path.Split(c.path)
		entries := folders[strings.TrimSuffix(dir, "/")]
		if c.new == absent {
			delete(entries, base)
		} else {
			entries[base] = treeEntry{c.new, c.newID}
		}
	}
	for _, name := range slices.Backward(names) { // inner ones first
		above := folders[strings.TrimPrefix(path.Dir("/"+name), "/")]
		if len(folders[name]) == 0 && name != "" {
			delete(above, path.Base(name))
			continue
		}
		data, err := folders[name].encode()
		if err != nil {
			return object{}, nil, fmt.Errorf("folder %q: %w", name, err)
		}
		tree = r.object("tree", data)
		all = append(all, tree)
		if name != "" {
			above[path.Base(name)] = treeEntry{folderMode, tree.id}
		}
	}
	return tree, all, nil
}

// A folder is a tree of git's that may be changed: entries by their names.
type folder map[string]treeEntry

type treeEntry struct{ mode, id string }

// folderMode is how a folder is noted in the one above it.
const folderMode = "40000"

// readFolders reads folders of a commit. Those that it does not have are empty.
func (r *Repo) readFolders(ctx context.Context, commit string, names []string) (map[string]folder, error) {
	found, err := r.readObjects(ctx, commit, "tree", names)
	if err != nil {
		return nil, err
	}
	folders := make(map[string]folder, len(names))
	for _, name := range names {
		if folders[name], err = decodeFolder(found[name], len(commit)/2); err != nil {
			return nil, fmt.Errorf("folder %q: %w", name, err)
		}
	}
	return folders, nil
}

// readObjects reads what a commit has at some paths, if it is of a kind.
func (r *Repo) readObjects(ctx context.Context, commit, kind string, names []string) (map[string][]byte, error) {
	found := make(map[string][]byte, len(names))
	err := r.askObjects(ctx, "--batch", commit, names, func(name, is string, size int, rest []byte) ([]byte, error) {
		if size >= len(rest) {
			return nil, fmt.Errorf("git cat-file: %q ends early", name)
		}
		if is == kind {
			found[name] = rest[:size]
		}
		return rest[size+1:], nil
	})
	return found, err
}

// askObjects asks git about what a commit has at some paths. Each is told its kind and size, with
// the rest of the answer; it gives what follows of that.
func (r *Repo) askObjects(ctx context.Context, how, commit string, names []string, each func(name, kind string, size int, rest []byte) ([]byte, error)) error {
	if len(names) == 0 {
		return nil
	}
	ask := make([]string, len(names))
	for i, name := range names {
		ask[i] = commit + ":" + name
	}
	out, err := r.git.run(ctx, r.ours(), list(ask), "cat-file", how, "--buffer", "-z")
	if err != nil {
		return err
	}
	for i, name := range names {
		if rest, ok := bytes.CutPrefix(out, []byte(ask[i]+" missing\n")); ok && name != "" {
			out = rest
			continue
		}
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var id, kind string
		var size int
		if _, err := fmt.Sscanf(string(head), "%s %s %d", &id, &kind, &size); err != nil || size < 0 {
			return fmt.Errorf("git cat-file: %q: %q", name, head)
		}
		if out, err = each(name, kind, size, rest); err != nil {
			return err
		}
	}
	return nil
}

var errTree = errors.New("not a tree as git writes it")

// decodeFolder reads a tree: mode, space, name, NUL, and the id in some bytes.
func decodeFolder(data []byte, idBytes int) (folder, error) {
	entries := folder{}
	for len(data) > 0 {
		info, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(info), " ")
		if _, twice := entries[name]; !ok || !spaced || twice || len(rest) < idBytes {
			return nil, errTree
		}
		entries[name] = treeEntry{plainMode(mode), hex.EncodeToString(rest[:idBytes])}
		data = rest[idBytes:]
	}
	return entries, nil
}

// plainMode is a mode as git writes it today. Other programs and earlier versions wrote folders
// with a zero before them, and files with all their permissions.
func plainMode(mode string) string {
	mode = strings.TrimLeft(mode, "0")
	bits, err := strconv.ParseUint(mode, 8, 32)
	const file, kind, executable = 0o100000, 0o170000, 0o100
	switch {
	case err != nil || bits&kind != file:
		return mode
	case bits&executable != 0:
		return "100755"
	default:
		return "100644"
	}
}

// encode writes the tree. Git sorts folders as if a slash followed their names.
func (f folder) encode() ([]byte, error) {
	keys := make([]string, 0, len(f))
	for name, e := range f {
		if e.mode == folderMode {
			name += "/"
		}
		keys = append(keys, name)
	}
	slices.Sort(keys)
	var b bytes.Buffer
	for _, key := range keys {
		name := strings.TrimSuffix(key, "/")
		id, err := hex.DecodeString(f[name].id)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s %s\x00%s", f[name].mode, name, id)
	}
	return b.Bytes(), nil
}
