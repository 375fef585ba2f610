// Package tools holds what a model can call: the [Tool] interface, the [Workspace] that
// every call works in, and the adapter [New] that turns a typed function into a Tool.
//
// The tools themselves live below, one package each. They reach files and processes
// through the workspace only, and return values; they neither log nor emit events.
package tools

import (
	"context"
	"encoding/json"
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
}

// A Command is the fact that a command ran, for reports.
type Command struct {
	Line   string
	Exit   int
	Killed string // "", "timeout" or "cancelled"
}

// Fail returns a failed result; the text names what happened and the next step.
func Fail(text string) Result { return Result{Text: text, IsError: true} }

// A Workspace is the directory an agent works in, as it is shown to it. Who has the value
// can reach what it reaches, and nothing else.
type Workspace struct {
	Path string // absolute, as the model sees it
	FS   FS
	Exec Exec // nil: no command can be run here
	// NoExec says why Exec is nil and what can be done about it.
	NoExec string
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

// Exec runs commands in the workspace, through its box. *sandbox.Box is the one in use.
type Exec interface {
	Run(ctx context.Context, c sandbox.Command) (sandbox.Output, error)
}
