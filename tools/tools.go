// Package tools holds what a model can call: the [Tool] interface, the [Workspace] that
// every call works in, and the adapter [New] that turns a typed function into a Tool.
//
// The tools themselves live below, one package each. They reach files and processes
// through the workspace only, and return values; they neither log nor emit events.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"skein/sandbox"
	"skein/scheduler"
)

// A Tool is something the model can call.
type Tool interface {
	// Spec describes the tool to the model. It does not change during a run.
	Spec() Spec

	// Effect tells what a call with these arguments does to its workspace. It must not
	// touch the workspace itself; arguments it cannot read are [scheduler.Execute].
	Effect(args json.RawMessage) scheduler.Effect

	// Run carries out one call. A failure that the model can act on (file absent, tests
	// red) is a [Result] with IsError set; an error means that the harness itself failed
	// and ends the run. Calls whose effects allow it overlap.
	Run(ctx context.Context, ws Workspace, args json.RawMessage) (Result, error)
}

// A Checker is a [Tool] that can tell bad arguments before anything else happens.
type Checker interface {
	// Check returns why the tool would refuse these arguments, or nil.
	Check(args json.RawMessage) error
}

// A Previewer is a [Tool] that can show a person what a call would do.
type Previewer interface {
	// Preview returns the exact command, or the diff, of a call that was not made yet. It
	// changes nothing. An error says why the call would fail; nobody need be asked then.
	Preview(ctx context.Context, ws Workspace, args json.RawMessage) (string, error)
}

// A Spec is a tool as the model is shown it. Its fields are those of model.Tool.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
}

// A Result is what a call gives back.
type Result struct {
	Text    string   // what the model is shown
	IsError bool     // the model is told that the call did not do what it asked
	Command *Command // the command that ran, if one did
	Acted   bool     // it may have changed something; set by whoever carries out the call
}

// A Command is the fact that a command ran, for reports.
type Command struct {
	Line   string
	Exit   int
	Killed string // "", "timeout" or "cancelled"
}

// Fail returns a failed result; the text names what happened and the next step.
func Fail(text string) Result { return Result{Text: text, IsError: true} }

// Failed returns the failed result of the named tool for err: its text and, if it has one,
// its hint, in the form of all our errors.
func Failed(tool string, err error) Result {
	text := tool + ": " + err.Error()
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) && h.Hint() != "" {
		text += "\nhint: " + h.Hint()
	}
	return Fail(text)
}

// A Fault is an error that the model can act on.
type Fault struct {
	What  string // what is wrong, beginning with the thing it is about
	Next  string // what to do now
	Cause error  // for errors.Is; its text is not shown; may be nil
}

func (f *Fault) Error() string { return f.What }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Hint says what to do now.
func (f *Fault) Hint() string { return f.Next }

// A Workspace is the directory an agent works in, as it is shown to it. Who has the value
// can reach what it reaches, and nothing else.
type Workspace struct {
	Path string // absolute, as the model sees it
	// Alias is another path whose files these are meant to be, "" for none: the parent's
	// workspace, where a copy cannot be shown at its path.
	Alias string
	FS    FS
	Exec  Exec // nil: no command can be run here
	// NoExec says why Exec is nil and what can be done about it.
	NoExec string
	// Seen is told of each file that is read for the model, as it was then: those of which a
	// tool shows something. Calls that overlap call it at the same time. Nil: nobody asks.
	Seen func(name string, info fs.FileInfo)
}

// Saw tells of a file that is read for the model.
func (ws Workspace) Saw(name string, info fs.FileInfo) {
	if ws.Seen != nil {
		ws.Seen(name, info)
	}
}

// FS reaches the files of a workspace by handle: names are slash-separated and relative to
// the workspace, and no name, link or race leads outside. *sandbox.Files is the one in use.
type FS interface {
	fs.FS
	Lstat(name string) (fs.FileInfo, error)
	ReadLink(name string) (string, error)
	// WriteFile replaces or creates a file atomically and creates its parent folders.
	WriteFile(name string, data []byte, perm fs.FileMode) error
}

// Exec runs commands in the workspace, through its box: a *sandbox.Box, opened at the first
// command, or a *sandbox.Bare where a person switched boxes off.
type Exec interface {
	Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error)
}
