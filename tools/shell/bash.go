// Package shell holds the tool that runs commands.
package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"skein/sandbox"
	"skein/scheduler"
	"skein/tools"
)

// How long a command may take, counted from its start.
const (
	usualTimeout = 120 * time.Second
	mostTimeout  = 600 * time.Second
)

// What is shown of output that is longer than both together, in characters. The end gets
// more, since that is where programs say what went wrong.
const (
	headChars = 4096
	tailChars = 6144
)

type bashArgs struct {
	Command string  `json:"command"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds, default 120, at most 600"`
}

// Bash returns the tool bash.
func Bash() tools.Tool {
	spec := tools.Spec{
		Name:        "bash",
		Description: "Run a command with a new bash in the workspace: no input, no state kept from call to call, killed with all it started at its timeout. The answer begins with exit=N, then the output; the middle of a long one is cut. To read, search or edit files use the other tools.",
	}
	return tools.Define(tools.Definition[bashArgs]{
		Spec:   spec,
		Effect: func(bashArgs) scheduler.Effect { return scheduler.Execute },
		Preview: func(_ context.Context, ws tools.Workspace, in bashArgs) (string, error) {
			_, err := command(ws, in)
			return in.Command, err
		},
		Run: func(ctx context.Context, ws tools.Workspace, in bashArgs) (tools.Result, error) {
			c, err := command(ws, in)
			if err != nil {
				return tools.Failed(spec.Name, err), nil
			}
			out, err := ws.Exec.Run(ctx, c)
			if err != nil && ctx.Err() != nil {
				return tools.Result{}, ctx.Err()
			} else if err != nil {
				// Nothing ran: no box could be set up, or it has no bash.
				return tools.Failed(spec.Name, err), nil
			}
			return result(in.Command, c.Timeout, out), nil
		},
	})
}

// command is what to run, or why it cannot be run.
func command(ws tools.Workspace, in bashArgs) (sandbox.Command, error) {
	timeout := usualTimeout
	if in.Timeout != 0 {
		timeout = time.Duration(in.Timeout * float64(time.Second))
	}
	switch {
	case ws.Exec == nil:
		return sandbox.Command{}, &tools.Fault{What: "no command can be run here: " + ws.NoExec, Next: "use the other tools"}
	case strings.TrimSpace(in.Command) == "":
		return sandbox.Command{}, &tools.Fault{What: "the command is empty", Next: "give the command line to run"}
	case strings.ContainsRune(in.Command, 0):
		return sandbox.Command{}, &tools.Fault{What: "the command holds a NUL character", Next: `write it as \0 or $'\0' for the program that wants it`}
	case in.Timeout < 0 || in.Timeout > mostTimeout.Seconds():
		return sandbox.Command{}, &tools.Fault{
			What: fmt.Sprintf("timeout %v is not between 0 and %v seconds", in.Timeout, mostTimeout.Seconds()),
			Next: "divide longer work into several commands",
		}
	}
	// One pipe for both streams: what a model is shown must be in the order of the writes.
	return sandbox.Command{Argv: []string{"bash", "-c", in.Command}, Timeout: timeout, Merge: true}, nil
}

func result(line string, timeout time.Duration, out sandbox.Output) tools.Result {
	var b strings.Builder
	if out.Killed != "" {
		fmt.Fprintf(&b, "killed: %s\n", out.Killed)
	} else {
		fmt.Fprintf(&b, "exit=%d\n", out.Exit)
	}
	b.WriteString(shorten(string(out.Combined), out.Dropped))
	if out.Killed == "timeout" {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[it had %s seconds; timeout can give it more, up to %v]\n", strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64), mostTimeout.Seconds())
	}
	return tools.Result{
		Text:    b.String(),
		IsError: out.Exit != 0 || out.Killed != "",
		Command: &tools.Command{Line: line, Exit: out.Exit, Killed: out.Killed},
	}
}

// shorten cuts the middle out of long output; dropped bytes are missing from it already.
func shorten(text string, dropped int64) string {
	head := prefix(text, headChars)
	rest := text[len(head):]
	tail := suffix(rest, tailChars)
	cut := int64(len(rest)-len(tail)) + dropped
	head, tail = strings.ToValidUTF8(head, "\uFFFD"), strings.ToValidUTF8(tail, "\uFFFD")
	if cut == 0 {
		return head + tail
	}
	return fmt.Sprintf("%s\n[… %d bytes cut; send the output to a file to see all of it …]\n%s", head, cut, tail)
}

// prefix returns the first n characters of s, or all of it.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// suffix returns the last n characters of s, or all of it.
func suffix(s string, n int) string {
	at := len(s)
	for ; at > 0 && n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}
