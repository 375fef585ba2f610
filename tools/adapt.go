package tools

import (
	"context"
	"encoding/json"

	"skein/scheduler"
)

// A Definition is a tool with typed arguments. In is a struct: its json tags name the
// arguments (omitempty makes one optional), its jsonschema tags describe them.
type Definition[In any] struct {
	Spec    Spec                                                           // its Schema is inferred from In
	Effect  func(In) scheduler.Effect                                      // nil: [scheduler.Execute]
	Preview func(ctx context.Context, ws Workspace, in In) (string, error) // see [Previewer]; may be nil
	Run     func(ctx context.Context, ws Workspace, in In) (Result, error) // as in [Tool]
}

// New adapts a typed function to a [Tool] whose calls all have the same effect: it decodes
// and validates the arguments and reports bad ones to the model instead of running.
func New[In any](spec Spec, effect scheduler.Effect, fn func(context.Context, Workspace, In) (Result, error)) Tool {
	return Define(Definition[In]{Spec: spec, Effect: func(In) scheduler.Effect { return effect }, Run: fn})
}

// Define is [New] for tools whose effect depends on the arguments, or that have a preview.
// The tool is a [Checker] and a [Previewer]. Define panics if In has no schema, which is a
// mistake in the program that the first test finds.
func Define[In any](d Definition[In]) Tool {
	s, err := infer[In]()
	if err != nil {
		panic("define tool " + d.Spec.Name + ": " + err.Error())
	}
	d.Spec.Schema = s.text
	return &typed[In]{def: d, schema: s}
}

type typed[In any] struct {
	def    Definition[In]
	schema *schema
}

var (
	_ Tool      = (*typed[struct{}])(nil)
	_ Checker   = (*typed[struct{}])(nil)
	_ Previewer = (*typed[struct{}])(nil)
)

func (t *typed[In]) Spec() Spec { return t.def.Spec }

func (t *typed[In]) Check(args json.RawMessage) error {
	var in In
	return t.schema.decode(args, &in)
}

func (t *typed[In]) Effect(args json.RawMessage) scheduler.Effect {
	var in In
	if t.def.Effect == nil || t.schema.decode(args, &in) != nil {
		return scheduler.Execute
	}
	return t.def.Effect(in)
}

func (t *typed[In]) Preview(ctx context.Context, ws Workspace, args json.RawMessage) (string, error) {
	var in In
	if err := t.schema.decode(args, &in); err != nil {
		return "", err
	}
	if t.def.Preview == nil {
		return string(args), nil
	}
	return t.def.Preview(ctx, ws, in)
}

func (t *typed[In]) Run(ctx context.Context, ws Workspace, args json.RawMessage) (Result, error) {
	var in In
	if err := t.schema.decode(args, &in); err != nil {
		return Failed(t.def.Spec.Name, err), nil
	}
	return t.def.Run(ctx, ws, in)
}
