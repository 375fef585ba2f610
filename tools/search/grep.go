package search

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"skein/scheduler"
	"skein/tools"
)

type grepArgs struct {
	Pattern string `json:"pattern" jsonschema:"RE2 regular expression, matched line by line; (?i) ignores case"`
	Path    string `json:"path,omitempty" jsonschema:"folder or file"`
	Include string `json:"include,omitempty" jsonschema:"only such files, as in glob"`
	Context int    `json:"context,omitempty" jsonschema:"lines around each hit"`
}

// Grep returns the tool grep.
func Grep() tools.Tool {
	spec := tools.Spec{
		Name:        "grep",
		Description: "Search file contents; hits come as path:line:text, at most 100 and 10,000 bytes. Binary and ignored files are left out. Prefer it to grep in bash.",
	}
	return tools.New(spec, scheduler.Read, func(ctx context.Context, ws tools.Workspace, in grepArgs) (tools.Result, error) {
		return answer(ctx, spec.Name, func() (string, error) { return grep(ctx, ws, in) })
	})
}

// maxContext keeps a hit small beside the limit of the answer.
const maxContext = 20

func grep(ctx context.Context, ws tools.Workspace, in grepArgs) (string, error) {
	if in.Context < 0 || in.Context > maxContext {
		return "", &tools.Fault{What: "context must be 0 to " + strconv.Itoa(maxContext), Next: "use read_file to see more of a file"}
	}
	m, err := parseRegexp(in.Pattern)
	if err != nil {
		return "", err
	}
	include := fileGlob{"**"}
	if in.Include != "" {
		if include, err = parseGlob(ws, in.Include); err != nil {
			return "", err
		}
	}
	root, file, err := folder(ctx, ws, in.Path)
	if err != nil {
		return "", err
	}
	g := &grepper{hits: hits{narrow: "path, include or a longer pattern"}, ws: ws, match: m, context: in.Context}
	w := &walk{ctx: ctx, fsys: ws.FS}
	w.visit = func(name string, d fs.DirEntry) error {
		if d.Type().IsRegular() && include.match(root, name) {
			return g.file(ctx, name)
		}
		return nil
	}
	if file {
		err = g.file(ctx, root)
	} else {
		err = w.below(root)
	}
	if err == nil {
		err = g.flush(ctx)
	}
	if err != nil && !errors.Is(err, fs.SkipAll) {
		return "", err
	}
	g.note(g.large, "files over 64 MiB were not searched")
	g.note(g.closed, "files could not be read")
	g.note(w.closed, "folders could not be read")
	return g.text("no match in " + strconv.Itoa(g.searched) + " text files"), nil
}

// A grepper searches files in the order in which they are handed to it. It does so some at a
// time, side by side, and stops after those in which the answer became full.
type grepper struct {
	hits
	ws       tools.Workspace
	match    matcher
	context  int
	waiting  []string
	searched int
	large    int
	closed   int
}

func (g *grepper) file(ctx context.Context, name string) error {
	const together = 64 // enough to keep all processors busy, little to throw away when full
	if g.waiting = append(g.waiting, name); len(g.waiting) < together {
		return nil
	}
	return g.flush(ctx)
}

// flush searches the waiting files. It returns fs.SkipAll once the answer is full.
func (g *grepper) flush(ctx context.Context) error {
	found := make([]findings, len(g.waiting))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range g.waiting {
		group.Go(func() error {
			if ctx.Err() == nil {
				found[i] = find(g.ws.FS, name, g.match, g.context)
			}
			return nil
		})
	}
	_ = group.Wait() // no worker returns an error
	for i, f := range found {
		switch f.state {
		case tooLarge:
			g.large++
		case unreadable:
			g.closed++
		case searched:
			g.searched++
		}
		for _, lines := range f.hits {
			if !g.add(lines) {
				return fs.SkipAll
			}
			g.ws.Saw(g.waiting[i], f.info)
		}
	}
	g.waiting = g.waiting[:0]
	return ctx.Err()
}
