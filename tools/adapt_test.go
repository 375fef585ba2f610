package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"skein/scheduler"
	"skein/tools"
)

type shape struct {
	Name  string   `json:"name" jsonschema:"what it is called"`
	Size  int      `json:"size,omitempty"`
	Ratio float64  `json:"ratio,omitempty"`
	Loud  *bool    `json:"loud,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

// echo returns its arguments as JSON, so that tests see what was decoded.
func echo() tools.Tool {
	return tools.Define(tools.Definition[shape]{
		Spec: tools.Spec{Name: "echo", Description: "Say it again."},
		Effect: func(in shape) scheduler.Effect {
			if in.Size > 0 {
				return scheduler.Write
			}
			return scheduler.Read
		},
		Run: func(_ context.Context, _ tools.Workspace, in shape) (tools.Result, error) {
			b, err := json.Marshal(in)
			return tools.Result{Text: string(b)}, err
		},
	})
}

const echoSchema = `{"type":"object","properties":{"name":{"type":"string","description":"what it is called"},"size":{"type":"integer"},"ratio":{"type":"number"},"loud":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name"],"additionalProperties":false}`

func TestSchemaIsInferred(t *testing.T) {
	s := echo().Spec()
	if s.Name != "echo" || s.Description != "Say it again." || string(s.Schema) != echoSchema {
		t.Errorf("Spec = %+v with schema %s, want %s", s, s.Schema, echoSchema)
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ args, want, fault string }{
		{`{"name": "a"}`, `{"name":"a"}`, ""},
		{` {"name": "<a>", "size": 3, "ratio": 1, "loud": false, "tags": ["x"]} `, `{"name":"\u003ca\u003e","size":3,"ratio":1,"loud":false,"tags":["x"]}`, ""},
		{`{"name": "a", "size": null, "loud": null, "tags": null}`, `{"name":"a"}`, ""},
		{`{"name": "first", "name": "last"}`, `{"name":"last"}`, ""},
		{``, "", "name is missing"},
		{`{}`, "", "name is missing"},
		{`{"name": null}`, "", "name is null"},
		{`{"Name": "a"}`, "", "name is missing; Name is unknown, did you mean name"},
		{`{"name": "a", "sise": 1, "zzz": 2, "colour": 3}`, "", "colour is unknown; sise is unknown, did you mean size; zzz is unknown"},
		{`{"name": 1, "size": "x"}`, "", `name: 1 has type "integer", want "string"; size: x has type "string", want "integer"`},
		{`{"name": "a", "size": 1.5}`, "", `size: 1.5 has type "number", want "integer"`},
		{`{"name": "a", "size": 1e30}`, "", "size: number 1e30 cannot be used"},
		{`{"name": "a", "tags": ["x", 1]}`, "", "tags: "},
		{`{"name": "a"`, "", "no JSON: unexpected end of JSON input at byte 12"},
		{`rm -rf`, "", "no JSON"},
		{`{"name": "a"} {"name": "b"}`, "", "no JSON"},
		{`["a"]`, "", `JSON, but no object: ["a"]`},
		{`"{\"name\": \"a\"}"`, "", "JSON, but no object"},
		{`{"` + strings.Repeat("é", 500) + `": 1, "name": "a"}`, "", "… is unknown"},
	} {
		got, err := echo().Run(t.Context(), tools.Workspace{}, json.RawMessage(tt.args))
		if err != nil {
			t.Fatalf("Run(%s) = error %v, want a result", tt.args, err)
		}
		check := echo().(tools.Checker).Check(json.RawMessage(tt.args))
		if tt.fault == "" {
			if got.IsError || got.Text != tt.want || check != nil {
				t.Errorf("Run(%s) = %+v, Check = %v; want %s", tt.args, got, check, tt.want)
			}
			continue
		}
		if !got.IsError || !strings.HasPrefix(got.Text, "echo: bad arguments: ") || !strings.Contains(got.Text, tt.fault) || !strings.HasSuffix(got.Text, "\nhint: nothing was done; call again with arguments of this schema: "+echoSchema) {
			t.Errorf("Run(%s) = %+v, want a fault with %q and the schema", tt.args, got, tt.fault)
		}
		if check == nil {
			t.Errorf("Check(%s) = nil, want the fault", tt.args)
		}
		if got := echo().Effect(json.RawMessage(tt.args)); got != scheduler.Execute {
			t.Errorf("Effect(%s) = %v, want execute", tt.args, got)
		}
	}
}

// The same bad arguments are answered by the same bytes.
func TestFaultsAreDeterministic(t *testing.T) {
	args := json.RawMessage(`{"b": 1, "a": 1, "d": 1, "c": 1, "size": "x", "ratio": "y", "loud": 1, "tags": 1}`)
	first := echo().(tools.Checker).Check(args).Error()
	for range 50 {
		if got := echo().(tools.Checker).Check(args).Error(); got != first {
			t.Fatalf("Check = %q, before it was %q", got, first)
		}
	}
}

func TestEffect(t *testing.T) {
	for args, want := range map[string]scheduler.Effect{`{"name": "a"}`: scheduler.Read, `{"name": "a", "size": 1}`: scheduler.Write} {
		if got := echo().Effect(json.RawMessage(args)); got != want {
			t.Errorf("Effect(%s) = %v, want %v", args, got, want)
		}
	}
	fixed := tools.New(tools.Spec{Name: "x"}, scheduler.Isolated, func(context.Context, tools.Workspace, struct{}) (tools.Result, error) { return tools.Result{}, nil })
	if got := fixed.Effect(nil); got != scheduler.Isolated {
		t.Errorf("Effect = %v, want isolated", got)
	}
}

// Without a preview of its own a tool shows its arguments.
func TestPreview(t *testing.T) {
	got, err := echo().(tools.Previewer).Preview(t.Context(), tools.Workspace{}, json.RawMessage(`{"name": "a"}`))
	if got != `{"name": "a"}` || err != nil {
		t.Errorf("Preview = %q, %v", got, err)
	}
	if _, err := echo().(tools.Previewer).Preview(t.Context(), tools.Workspace{}, json.RawMessage(`{}`)); err == nil {
		t.Error("Preview of bad arguments = no error")
	}
}

func TestFailed(t *testing.T) {
	cause := errors.New("cause")
	fault := &tools.Fault{What: "a.go: is a directory", Next: "use list_files", Cause: cause}
	if got := tools.Failed("read_file", fault); got.Text != "read_file: a.go: is a directory\nhint: use list_files" || !got.IsError || !errors.Is(fault, cause) {
		t.Errorf("Failed = %+v", got)
	}
	if got := tools.Failed("read_file", cause); got.Text != "read_file: cause" {
		t.Errorf("Failed = %+v, want no hint where there is none", got)
	}
}
