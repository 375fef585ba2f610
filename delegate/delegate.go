// Package delegate is the tool delegate_task: what the model is offered ([Offer]), what a
// child is told ([Front], [Brief]), and what its parent gets back ([Report]).
//
// It asks a [Runner] to carry out a task and never knows who that is.
package delegate

import (
	"context"
	"encoding/json"

	"skein/scheduler"
	"skein/tools"
)

// Name is the tool's name.
const Name = "delegate_task"

// Access is what a child may do to files.
type Access string

// A reader may only read; a writer works in a copy of its own.
const (
	ReadOnly Access = "read"
	Writing  Access = "write"
)

// A Task is what is handed to a child.
type Task struct {
	Task   string `json:"task"`
	Title  string `json:"title,omitempty"`
	Access Access `json:"access,omitempty"` // "" is read

	Paths  []string        `json:"paths,omitempty"`         // globs of what a writer may change; none: all
	Schema json.RawMessage `json:"output_schema,omitempty"` // that the answer has to fit
	Role   string          `json:"role,omitempty"`
	Model  string          `json:"model,omitempty"` // "" is the parent's
}

// A Runner carries out one task in isolation.
type Runner interface {
	// RunChild returns when the child has ended. Finish then brings its changes back and
	// gives the report; it is called once, after all children of the stage have ended, in
	// request order. An error of either means that the harness failed.
	RunChild(ctx context.Context, d *Delegation) (finish func(context.Context) (Report, error), err error)
}

// A Delegation is one call of delegate_task among those of its reply.
type Delegation struct {
	Task
	Tools     []string      // that alone its role may use; nil: all
	Index, Of int           // which of the reply's delegations, from 1
	role      string        // what the role tells the child
	siblings  []*Delegation // all of the reply, in request order
}

// Gather tells the delegations of one reply, in request order, of each other. Refused ones
// are not among them.
func Gather(all []*Delegation) {
	for i, d := range all {
		d.Index, d.Of, d.siblings = i+1, len(all), all
	}
}

// Job makes the delegation a job of its batch; out receives what the parent is shown.
// Effect is Read for readers; for writers the caller knows whether copies can be had.
func (d *Delegation) Job(r Runner, effect scheduler.Effect, out *tools.Result) scheduler.Job {
	var finish func(context.Context) (Report, error)
	return scheduler.Job{
		Effect: effect,
		Slot:   true,
		Run: func(ctx context.Context) (err error) {
			finish, err = r.RunChild(ctx, d)
			return err
		},
		Settle: func(ctx context.Context) error {
			report, err := finish(ctx)
			if err != nil {
				return err
			}
			*out = tools.Result{Text: report.Model(), IsError: report.Failed()}
			return nil
		},
	}
}
