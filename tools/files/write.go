package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"skein/scheduler"
	"skein/tools"
	"skein/tools/mask"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

// Write returns the tool write_file. It overwrites only what rec knows to be seen.
func Write(rec *Record) tools.Tool {
	spec := tools.Spec{
		Name:        "write_file",
		Description: "Create a file, parent folders included, or replace one as a whole. A file that exists must have been read whole in an earlier reply. To change a part, use search_replace.",
	}
	return tools.Define(tools.Definition[writeArgs]{
		Spec:   spec,
		Effect: func(writeArgs) scheduler.Effect { return scheduler.Write },
		Preview: func(ctx context.Context, ws tools.Workspace, in writeArgs) (string, error) {
			old, exists, err := rec.replaced(ctx, ws, in)
			if err != nil {
				return "", err
			}
			diff := udiff.Unified("a/"+old.Name, "b/"+old.Name, old.Data, in.Content)
			switch { // what has no line is to be told apart, too
			case diff != "":
				return diff, nil
			case exists:
				return tools.Show(old.Name) + " is written as it is", nil
			}
			return tools.Show(old.Name) + " is created empty", nil
		},
		Run: func(ctx context.Context, ws tools.Workspace, in writeArgs) (tools.Result, error) {
			text, err := rec.write(ctx, ws, in)
			if err != nil {
				return tools.Failed(spec.Name, err), ctx.Err()
			}
			return tools.Result{Text: text}, nil
		},
	})
}

func (r *Record) write(ctx context.Context, ws tools.Workspace, in writeArgs) (string, error) {
	old, exists, err := r.replaced(ctx, ws, in)
	if err != nil {
		return "", err
	}
	// FS keeps the mode of a file that is there.
	if err := ws.FS.WriteFile(old.Name, []byte(in.Content), 0o644); err != nil {
		return "", err
	}
	r.Wrote(old.Name, in.Content)
	did := "created"
	if exists {
		did = "replaced"
	}
	return fmt.Sprintf("%s %s: %d lines, %d bytes\n", did, tools.Show(old.Name), len(split(in.Content)), len(in.Content)), nil
}

// replaced returns the file that a write would replace, if there is one, or why it must not
// be written.
func (r *Record) replaced(ctx context.Context, ws tools.Workspace, in writeArgs) (old tools.Text, exists bool, err error) {
	name, err := ws.Name(in.Path)
	if err != nil {
		return old, false, err
	}
	if err := mask.Edit("content", in.Content); err != nil {
		return old, false, err
	}
	if name == "." || strings.HasSuffix(in.Path, "/") {
		return old, false, &tools.Fault{What: tools.Show(in.Path) + ": names a directory", Next: "give the path of a file"}
	}
	old.Name = name
	// Load would look for near misses, which for a new file are none of our business.
	if _, err := ws.FS.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return old, false, nil
	}
	t, err := ws.Load(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return old, false, nil // a link to nothing yet
	} else if err != nil {
		return old, false, err
	}
	return t, true, r.check(t)
}
