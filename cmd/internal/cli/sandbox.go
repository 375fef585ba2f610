package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skein/cmd/internal/face"
	"skein/sandbox"
	"skein/worktree"
)

const sandboxExitCodes = `Exit codes: the command's own, 128 + N where signal N ended it · 127 it could not be started ·
137 ended for a limit · 141 nobody takes its output · 1 skein failed · 2 wrong usage · 130 interrupted`

// sandboxOptions is what sandbox is told by its flags.
type sandboxOptions struct {
	write   []string
	show    []string
	net     bool
	memory  size
	timeout time.Duration
}

func newSandbox() *cobra.Command {
	var o sandboxOptions
	c := &cobra.Command{
		Use:   "sandbox [flags] -- COMMAND...",
		Short: "Try a command in the box that subagents' commands run in",
		Long: `Run a command in a box, as those of agents are, with the current folder as its workspace: a
reader's, or with --write one that may change something. It is given what is piped or redirected
into this one as its input; a terminal is not passed on.`,
		Example: `  skein sandbox -- bash -c 'echo x > README.md'      # refused: a reader changes nothing
  skein sandbox --write . --allow-net -- go mod download
  skein sandbox --write build --readable ../lib --memory 2g -- make`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c, "no command", "name one: skein sandbox -- ls -la")
			}
			return nil
		},

		Annotations: map[string]string{ownExitCodes: sandboxExitCodes},

		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, args []string) error { return runSandbox(c, o, args) },
	}
	f := c.Flags()
	f.SetInterspersed(false) // flags behind the command are the command's
	f.StringArrayVar(&o.write, "write", nil, "`DIR` that may be changed, the current folder or below it; may be repeated")
	f.StringArrayVar(&o.show, "readable", nil, readableText)
	f.BoolVar(&o.net, "allow-net", false, "give it the network that you have")
	f.Var(&o.memory, "memory", "memory of the command's processes together, such as 2g (default half of the machine's)")
	f.DurationVar(&o.timeout, "timeout", 0, "time of the command; 0 is no limit")
	return c
}

func runSandbox(c *cobra.Command, o sandboxOptions, argv []string) (err error) {
	policy, err := o.policy(c.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	box, err := sandbox.Open(ctx, policy)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer func() {
		err = errors.Join(err, box.Close())
		if planted := box.Planted(); len(planted) > 0 {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "note: the command made what programs outside of boxes obey: %s\n", strings.Join(planted, ", "))
		}
	}()
	_, _ = fmt.Fprintln(c.ErrOrStderr(), "box: "+describe(policy))
	in, err := input(os.Stdin)
	if err != nil {
		return fmt.Errorf("sandbox: pass the input on: %w", err)
	}
	if in != nil {
		defer func() { _ = in.Close() }() // the command has its own
	}
	out, err := box.Run(ctx, sandbox.Command{
		Argv: argv, Timeout: o.timeout, Stdin: in,
		Out: &passing{screen(c.OutOrStdout()), cancel}, Err: &passing{screen(c.ErrOrStderr()), cancel},
	})
	lost := context.Cause(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &commandEnded{exitNotRun, err.Error(), "name a program that the box shows; temporary folders and places of secrets are hidden in it"}
	case err != nil:
		return fmt.Errorf("sandbox: %w", err)
	case out.Killed == "" && out.Exit == 0:
		return nil
	case out.Killed == "":
		return &commandEnded{exit: out.Exit}
	case c.Context().Err() != nil:
		return &commandEnded{exitInterrupted, "interrupted", "the command and all that it started are ended"}
	case errors.Is(lost, syscall.EPIPE):
		return &commandEnded{exit: 128 + int(syscall.SIGPIPE)}
	case lost != nil:
		return fmt.Errorf("sandbox: pass the output on: %w", lost)
	}
	return &commandEnded{out.Exit, "the command was ended for its limit: " + out.Killed, o.hint(out.Killed)}
}

// screen is a writer for what a command prints: a terminal only shows it, whatever else gets
// the bytes.
func screen(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return face.NewVisibleWriter(w)
	}
	return w
}

// input gives a command what is piped or redirected into this program; nil for none. It is
// never given the descriptor itself: through a file or folder that was opened outside a command
// could reach outside.
func input(from *os.File) (*os.File, error) {
	info, err := from.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice != 0 || info.IsDir() {
		return nil, nil // closed, a terminal, or nothing that can be read
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { // ends with this program: nobody can take back a read from whoever is at the other end
		_, _ = io.Copy(w, from)
		_ = w.Close()
	}()
	return r, nil
}

// policy is the box that the flags ask for.
func (o sandboxOptions) policy(ctx context.Context) (sandbox.Policy, error) {
	fault := func(text, hint string) error { return &usageError{command: "sandbox", text: text, hint: hint} }
	dir, err := os.Getwd()
	if err != nil {
		return sandbox.Policy{}, fmt.Errorf("sandbox: find the current folder: %w", err)
	}
	p := sandbox.Policy{
		Workspace: dir, Writable: len(o.write) > 0, Hidden: []string{".skein"},
		Git: worktree.User(ctx, dir), Env: sandbox.Environment(os.Environ()), Net: o.net, Limits: sandbox.Limits{Memory: int64(o.memory)},
	}
	if h := (interface{ Hint() string })(nil); errors.As(p.Limits.Check(), &h) {
		return p, fault("--memory: less than a command needs", h.Hint())
	}
	if p.Readable, err = readable("sandbox", o.show, p.Env); err != nil {
		return p, err
	}
	if repo, err := worktree.Open(ctx, dir, worktree.Options{}); err == nil {
		p.Hidden = append(p.Hidden, repo.Private()...)
	}
	for _, folder := range o.write {
		if folder == "" {
			return p, fault("--write is empty", "name the folder that may be changed: --write . is all of it")
		}
		abs, err := filepath.Abs(folder)
		if err != nil {
			return p, fmt.Errorf("sandbox: find %s: %w", folder, err)
		}
		rel, err := filepath.Rel(dir, abs)
		if err != nil || !filepath.IsLocal(rel) {
			return p, fault("--write "+folder+": it is not in the current folder", "go to the folder that the command works in, and name what it may change")
		}
		if info, err := os.Stat(abs); err != nil {
			return p, fault("--write "+folder+": "+reason(err).Error(), "name a folder that exists")
		} else if !info.IsDir() {
			return p, fault("--write "+folder+": it is no folder", "name the folder that it is in")
		}
		p.Scopes = append(p.Scopes, rel)
	}
	if o.timeout < 0 {
		return p, fault(fmt.Sprintf("--timeout %v is less than 0s", o.timeout), "as in --timeout 30s; 0 is no limit")
	}
	return p, nil
}

// readableText is the help of --readable.
const readableText = "`PATH` that commands may read besides, such as ../other; may be repeated"

// readable checks what a command is told by --readable.
func readable(command string, paths, env []string) ([]string, error) {
	list, err := sandbox.CheckReadable(paths, env)
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) {
		return nil, &usageError{command: command, text: "--readable " + strings.TrimPrefix(errors.Unwrap(err).Error(), "readable path "), hint: h.Hint()}
	}
	return list, err
}

// describe tells in one line what a box is like.
func describe(p sandbox.Policy) string {
	may := "nothing in " + p.Workspace + " may be changed"
	switch {
	case slices.Contains(p.Scopes, "."):
		may = p.Workspace + " may be changed"
	case p.Writable:
		slices.Sort(p.Scopes)
		may = "in " + p.Workspace + " may be changed: " + strings.Join(p.Scopes, ", ")
	}
	network := "no network"
	if p.Net {
		network = "the network that you have"
	}
	return may + "; " + network + "; of the rest it shows the system, toolchains" + strings.Join(append([]string{""}, p.Readable...), ", ") + "; HOME and /tmp are its own and end with it"
}

// exitNotRun is what shells and env answer for a program that they do not find.
const exitNotRun = 127

// hint says what would let a command get further that was ended.
func (o sandboxOptions) hint(why string) string {
	switch why {
	case "timeout":
		return "raise --timeout above " + o.timeout.String()
	case "memory":
		return "raise --memory, or let it need less"
	case "output":
		return "let it print less, or into a file"
	case "unwatched":
		return "it ran a program that nobody may read, so what it writes cannot be counted: chmod +r it"
	}
	return "it used more " + why + " than any command of a box may"
}

// A passing hands output on; where nobody takes it any more, the command ends.
type passing struct {
	to     io.Writer
	cancel context.CancelCauseFunc
}

// Write implements [io.Writer].
func (p *passing) Write(data []byte) (int, error) {
	n, err := p.to.Write(data)
	if err != nil {
		p.cancel(err)
	}
	return n, err
}

// A commandEnded is a command that did not end well. Its exit code is ours, and where it ended
// by itself it has said why.
type commandEnded struct {
	exit       int
	text, hint string // text is "" where there is nothing to add
}

func (e *commandEnded) Error() string { return "sandbox: " + e.text }

// Hint says what would let it get further.
func (e *commandEnded) Hint() string { return e.hint }
