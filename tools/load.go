package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"
)

// MaxText is the size in bytes of the largest file that is loaded as text.
const MaxText = 32 << 20

// A Text is a file of the workspace that was loaded whole.
type Text struct {
	Name string // in FS
	Data string // valid UTF-8
	Perm fs.FileMode
}

// Open opens a file or folder by a path as the model wrote it, and returns its name in FS.
// Every error is one that the model can act on; that of a missing file names near misses and
// wraps [fs.ErrNotExist].
func (ws Workspace) Open(ctx context.Context, p string) (name string, f fs.File, info fs.FileInfo, err error) {
	if name, err = ws.Name(p); err != nil {
		return "", nil, nil, err
	}
	f, err = ws.FS.Open(name)
	if absent(err) {
		return "", nil, nil, ws.missing(ctx, name)
	} else if err != nil {
		return "", nil, nil, err
	}
	if info, err = f.Stat(); err != nil {
		_ = f.Close()
		return "", nil, nil, err
	}
	return name, f, info, nil
}

// Load reads a text file. Every error is one that the model can act on: those of Open, no
// regular file, no UTF-8 text, too large. [Workspace.Seen] is told of it.
func (ws Workspace) Load(ctx context.Context, p string) (Text, error) {
	name, f, info, err := ws.Open(ctx, p)
	if err != nil {
		return Text{}, err
	}
	defer func() { _ = f.Close() }()
	show := Show(name)
	switch {
	case info.IsDir():
		return Text{}, &Fault{What: show + ": is a directory", Next: "use list_files for a directory"}
	case !info.Mode().IsRegular():
		return Text{}, &Fault{What: show + ": is no regular file", Next: "only regular files can be read and changed"}
	}
	// One byte more than allowed, since a file may grow after it was looked at.
	data, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	if err != nil {
		return Text{}, err
	}
	if len(data) > MaxText {
		return Text{}, &Fault{
			What: fmt.Sprintf("%s: has %d bytes, more than the %d that can be loaded", show, info.Size(), MaxText),
			Next: "use grep, or bash with head, tail or sed -n, to see parts of it",
		}
	}
	if fault := notText(show, data); fault != nil {
		return Text{}, fault
	}
	ws.Saw(name, info)
	return Text{Name: name, Data: string(data), Perm: info.Mode().Perm()}, nil
}

func notText(show string, data []byte) error {
	kind := http.DetectContentType(data)
	if strings.HasPrefix(kind, "image/") && !utf8.Valid(data) {
		return &Fault{What: fmt.Sprintf("%s: is an image (%s, %d bytes)", show, kind, len(data)), Next: "images cannot be shown; work with its name, type and size"}
	}
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return &Fault{What: fmt.Sprintf("%s: is a binary file (%s, %d bytes, NUL at byte %d)", show, kind, len(data), at), Next: "use bash with a program that knows its format"}
	}
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && n == 1 {
			return &Fault{What: fmt.Sprintf("%s: is not UTF-8 text (byte 0x%02X at %d of %d)", show, data[at], at, len(data)), Next: "use bash, for one iconv, to convert it"}
		}
		at += n
	}
	return nil
}
