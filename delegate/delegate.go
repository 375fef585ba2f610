// Package delegate is the tool delegate_task: what the model is offered, what a child is
// told ([Front], [Brief]), and what its parent gets back ([Report]).
//
// It asks a [Runner] to carry out a task and never knows who that is.
package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

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
}

// schema is written by hand: it is short, and its bytes are a part of every request.
const schema = `{"type":"object","properties":{` +
	`"task":{"type":"string","description":"The whole task, complete in itself: goal, files or places, constraints, and what the answer must contain."},` +
	`"title":{"type":"string","description":"A few words naming it in reports."},` +
	`"access":{"type":"string","enum":["read","write"],"description":"read (default): may only read and run commands that change nothing. write: may change files, in a copy of its own; its changes are merged into yours when it is done."}` +
	`},"required":["task"],"additionalProperties":false}`

// Spec describes the tool for a mode. Parent and children are shown the same.
func Spec(m Mode) tools.Spec {
	return tools.Spec{
		Name: Name,
		Description: "Hand a part of the work to a subagent and get its report. Use it for parts that are independent, large, or would fill this conversation with text you do not need. " +
			"Ask for independent parts in several calls in one reply: they run at the same time, all writers of a reply start from the same state of your tree, and their changes are merged in the order of your calls. " +
			"Not for a single read or edit that you can do in one call. " +
			"Write each task concrete and complete in itself, and name the output you want. " + m.sees(),
		Schema: json.RawMessage(schema),
	}
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
	Index, Of int // which of the reply's delegations, from 1
	siblings  []string
}

// Read reads the arguments of a call. The error tells the model what is wrong with them.
func Read(args string) (*Delegation, error) {
	t, err := parse(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w. Its arguments are described by this schema: %s", Name, err, schema)
	}
	return &Delegation{Task: t, Index: 1, Of: 1}, nil
}

// Gather tells the delegations of one reply, in request order, of each other. Refused ones
// are not among them.
func Gather(all []*Delegation) {
	for i, d := range all {
		d.Index, d.Of, d.siblings = i+1, len(all), nil
		for j, s := range all {
			if j != i {
				d.siblings = append(d.siblings, s.Label())
			}
		}
	}
}

func parse(args string) (Task, error) {
	var t Task
	dec := json.NewDecoder(bytes.NewReader([]byte(args)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return t, fmt.Errorf("read arguments: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return t, errors.New("read arguments: something follows the JSON object")
	}
	if strings.TrimSpace(t.Task) == "" {
		return t, errors.New("read arguments: task is empty")
	}
	switch t.Access {
	case "":
		t.Access = ReadOnly
	case ReadOnly, Writing:
	default:
		return t, fmt.Errorf("read arguments: access is %q, not read or write", t.Access)
	}
	return t, nil
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
