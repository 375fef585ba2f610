package edit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"skein/scheduler"
	"skein/tools"
	"skein/tools/mask"
)

// An Observer is told of every edit that was written. *files.Record is the one in use.
type Observer interface {
	Edited(name, before, after string)
}

type searchReplaceArgs struct {
	Path    string `json:"path"`
	Search  string `json:"search" jsonschema:"exact text of the file, without line numbers"`
	Replace string `json:"replace"`
	All     bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

// SearchReplace returns the tool search_replace. Watch, which may be nil, is told of its edits.
func SearchReplace(watch Observer) tools.Tool {
	spec := tools.Spec{
		Name:        "search_replace",
		Description: "Replace text in a file. `search` must occur exactly once, white space included, unless `all`; take in neighbouring lines to make it unique. Line endings are kept. The answer shows the changed lines.",
	}
	return tools.Define(tools.Definition[searchReplaceArgs]{
		Spec:   spec,
		Effect: func(searchReplaceArgs) scheduler.Effect { return scheduler.Write },
		Preview: func(ctx context.Context, ws tools.Workspace, in searchReplaceArgs) (string, error) {
			t, e, err := plan(ctx, ws, in)
			if err != nil {
				return "", err
			}
			return udiff.Unified("a/"+t.Name, "b/"+t.Name, t.Data, e.Text), nil
		},
		Run: func(ctx context.Context, ws tools.Workspace, in searchReplaceArgs) (tools.Result, error) {
			t, e, err := plan(ctx, ws, in)
			if err == nil {
				// FS keeps the mode of the file; Perm is for one that was removed just now.
				err = ws.FS.WriteFile(t.Name, []byte(e.Text), t.Perm)
			}
			if err != nil {
				return tools.Failed(spec.Name, err), ctx.Err()
			}
			if watch != nil {
				watch.Edited(t.Name, t.Data, e.Text)
			}
			return tools.Result{Text: report(tools.Show(t.Name), e)}, nil
		},
	})
}

// plan reads the file and makes the edit without writing it.
func plan(ctx context.Context, ws tools.Workspace, in searchReplaceArgs) (tools.Text, Edit, error) {
	if err := mask.Edit("replace", in.Replace); err != nil {
		return tools.Text{}, Edit{}, err
	}
	t, err := ws.Load(ctx, in.Path)
	if err != nil {
		return t, Edit{}, err
	}
	e, err := Apply(t.Data, in.Search, in.Replace, in.All)
	if err == nil && e.Text == t.Data {
		err = &tools.Fault{What: "search and replace are the same: nothing would change", Next: "give the new text as replace"}
	}
	if err != nil {
		return t, e, explain(tools.Show(t.Name), err)
	}
	return t, e, nil
}

// explain tells the model what to do about an edit that cannot be made.
func explain(file string, err error) error {
	f := &tools.Fault{What: file + ": " + err.Error(), Cause: err}
	m := (*MatchError)(nil)
	switch {
	case errors.Is(err, ErrEmpty):
		f.Next = "search must hold the text to replace; use write_file to fill an empty file"
	case !errors.As(err, &m):
		return err
	case m.Count == 0 && m.Close == nil:
		f.What += ", nor anything like it; nothing was changed"
		f.Next = "read the file and copy the text to replace from it"
	case m.Count == 0:
		f.What += "; nothing was changed\n" + m.Close.String()
		f.Next = "copy the text exactly as the file has it"
	default:
		at := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(m.Lines)), ", "), "[]")
		if m.Count > len(m.Lines) {
			at += ", …"
		}
		f.What += ", in lines " + at + "; nothing was changed"
		f.Next = "add neighbouring lines to search so that it is there once, or set all"
	}
	return f
}

// report shows the changed lines of the new text with their neighbours, as read_file would.
func report(file string, e Edit) string {
	const around, most = 3, 10_000 // lines, bytes
	var b strings.Builder
	times := "1 occurrence"
	if n := len(e.New); n > 1 {
		times = fmt.Sprintf("%d occurrences", n)
	}
	fmt.Fprintf(&b, "replaced %s in %s\n", times, file)

	lines := strings.SplitAfter(e.Text, "\n")
	if n := len(lines) - 1; lines[n] == "" {
		lines = lines[:n]
	}
	shown, line, at := 0, 0, 0 // lines shown so far; the line that at is in, from 0
	for i, s := range e.New {
		line += strings.Count(e.Text[at:s.Start], "\n")
		last := line + strings.Count(e.Text[s.Start:s.End], "\n")
		from, to := max(shown, line-around), min(len(lines), last+around+1)
		if from > shown && shown > 0 {
			b.WriteString("   …\n")
		}
		for n := from; n < to; n++ {
			text := strings.TrimRight(lines[n], "\r\n")
			if b.Len()+len(text) > most-100 {
				fmt.Fprintf(&b, "[cut at line %d, replacement %d of %d; read_file shows the rest]\n", n+1, i+1, len(e.New))
				return b.String()
			}
			fmt.Fprintf(&b, "%4d| %s\n", n+1, text)
		}
		shown, at = max(shown, to), s.Start
	}
	return b.String()
}
