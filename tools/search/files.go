package search

import (
	"context"
	"io/fs"
	"strings"

	"skein/scheduler"
	"skein/tools"
)

type listArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"default the workspace"`
	Depth int    `json:"depth,omitempty" jsonschema:"levels, default 2"`
}

// List returns the tool list_files.
func List() tools.Tool {
	spec := tools.Spec{
		Name:        "list_files",
		Description: "List files and folders, as far as no ignore file hides them; at most 100. To find a file by name use glob.",
	}
	return tools.New(spec, scheduler.Read, func(ctx context.Context, ws tools.Workspace, in listArgs) (tools.Result, error) {
		return answer(ctx, spec.Name, func() (string, error) { return list(ctx, ws, in) })
	})
}

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"such as *.go (at any depth) or cmd/**/main.go"`
	Path    string `json:"path,omitempty" jsonschema:"folder to look in"`
}

// Glob returns the tool glob.
func Glob() tools.Tool {
	spec := tools.Spec{
		Name:        "glob",
		Description: "Find files by name, at most 100. To look into files use grep.",
	}
	return tools.New(spec, scheduler.Read, func(ctx context.Context, ws tools.Workspace, in globArgs) (tools.Result, error) {
		return answer(ctx, spec.Name, func() (string, error) { return glob(ctx, ws, in) })
	})
}

// answer makes a result of what a search returns. A search that was cancelled has none.
func answer(ctx context.Context, tool string, search func() (string, error)) (tools.Result, error) {
	text, err := search()
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case err != nil:
		return tools.Failed(tool, err), nil
	}
	return tools.Result{Text: text}, nil
}

// folder opens the folder to look in; file is set if the path names a file instead.
func folder(ctx context.Context, ws tools.Workspace, p string) (name string, file bool, err error) {
	if p == "" {
		p = "."
	}
	name, f, info, err := ws.Open(ctx, p)
	if err != nil {
		return "", false, err
	}
	return name, !info.IsDir(), f.Close()
}

func onlyFolder(name string) error {
	return &tools.Fault{What: tools.Show(name) + ": is no directory", Next: "use read_file for a file"}
}

func list(ctx context.Context, ws tools.Workspace, in listArgs) (string, error) {
	root, file, err := folder(ctx, ws, in.Path)
	if err != nil {
		return "", err
	}
	if file {
		return "", onlyFolder(root)
	}
	if in.Depth == 0 {
		in.Depth = 2
	}
	if in.Depth < 0 {
		return "", &tools.Fault{What: "depth must not be negative", Next: "1 lists the folder itself, 2 its folders too"}
	}
	h := &hits{narrow: "path or a smaller depth"}
	w := &walk{ctx: ctx, fsys: ws.FS}
	w.visit = func(name string, d fs.DirEntry) error {
		if !h.add(entry(ws, name, d) + "\n") {
			return fs.SkipAll
		}
		below := name
		if root != "." {
			below = strings.TrimPrefix(name, root+"/")
		}
		if d.IsDir() && strings.Count(below, "/")+1 >= in.Depth {
			return fs.SkipDir
		}
		return nil
	}
	if err := w.below(root); err != nil {
		return "", err
	}
	h.note(w.closed, "folders could not be read")
	return h.text("no files in " + tools.Show(root)), nil
}

// entry shows what kind of thing a name is: "dir/", "link -> target", "pipe (not regular)".
func entry(ws tools.Workspace, name string, d fs.DirEntry) string {
	show := tools.Show(name)
	switch {
	case d.IsDir():
		return show + "/"
	case d.Type()&fs.ModeSymlink != 0:
		if target, err := ws.FS.ReadLink(name); err == nil {
			return show + " -> " + tools.Show(target)
		}
	case !d.Type().IsRegular():
		return show + " (not regular)"
	}
	return show
}

func glob(ctx context.Context, ws tools.Workspace, in globArgs) (string, error) {
	pattern, err := parseGlob(ws, in.Pattern)
	if err != nil {
		return "", err
	}
	root, file, err := folder(ctx, ws, in.Path)
	if err != nil {
		return "", err
	}
	if file {
		return "", onlyFolder(root)
	}
	h := &hits{narrow: "path or a longer pattern"}
	w := &walk{ctx: ctx, fsys: ws.FS}
	w.visit = func(name string, d fs.DirEntry) error {
		if !d.IsDir() && pattern.match(root, name) && !h.add(tools.Show(name)+"\n") {
			return fs.SkipAll
		}
		return nil
	}
	if err := w.below(root); err != nil {
		return "", err
	}
	h.note(w.closed, "folders could not be read")
	return h.text("no file matches"), nil
}
