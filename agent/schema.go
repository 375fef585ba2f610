package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// NewForm makes a form of a JSON Schema: an object, or true or false. Its references stay
// inside it, nothing is fetched, and one that the validator would not survive is refused.
func NewForm(schema []byte) (*Form, error) {
	f, _, err := newForm(schema)
	return f, err
}

// newForm also gives the references of the schema, which all lead somewhere.
func newForm(schema []byte) (*Form, *refs, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, schema); err != nil {
		return nil, nil, err
	}
	var plain any
	if err := json.Unmarshal(schema, &plain); err != nil {
		return nil, nil, err
	}
	switch plain.(type) {
	case map[string]any, bool:
	default:
		return nil, nil, errors.New("a JSON Schema is an object, or true or false")
	}
	if nested(plain, 0) {
		return nil, nil, fmt.Errorf("it is nested more than %d deep", schemaDepth)
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(schema, &parsed); err != nil {
		return nil, nil, err
	}
	// As the validator took it: to that $REF is a reference, too.
	taken, err := json.Marshal(&parsed)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(taken, &plain); err != nil {
		return nil, nil, err
	}
	refs := &refs{root: plain, state: map[string]int{}}
	if err := refs.all(plain); err != nil {
		return nil, nil, err
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return nil, nil, err
	}
	return &Form{Schema: compact.Bytes(), Check: func(answer string) error {
		var value any
		if err := json.Unmarshal([]byte(strings.TrimSpace(answer)), &value); err != nil {
			return fmt.Errorf("it is no JSON value: %w", err)
		}
		return resolved.Validate(value)
	}}, refs, nil
}

// What a model may ask to have an answer checked against. Written out with its references, a
// schema of a few lines can come to more than a validator ever gets through.
const (
	modelsSchemaBytes = 32 << 10
	modelsSchemaParts = 10_000
)

// NewModelsForm is [NewForm] for a schema that a model wrote for another, which is told it: a small
// one, which comes to an end.
func NewModelsForm(schema []byte) (*Form, error) {
	if len(schema) > modelsSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(schema), modelsSchemaBytes)
	}
	f, refs, err := newForm(schema)
	if err != nil {
		return nil, err
	}
	if refs.parts(refs.root, modelsSchemaParts) < 0 {
		return nil, errors.New("its references lead back to themselves, or to too much: write it out without $ref")
	}
	f.Told = true
	return f, nil
}

// schemaDepth is how deeply a schema may be nested. Deeper ones take the validator minutes.
const schemaDepth = 100

func nested(v any, depth int) bool {
	if depth > schemaDepth {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, w := range v {
			if nested(w, depth+1) {
				return true
			}
		}
	case []any:
		for _, w := range v {
			if nested(w, depth+1) {
				return true
			}
		}
	}
	return false
}

// refs follows local references. The validator would not survive a schema that refers to itself
// without going into the value.
type refs struct {
	root  any
	state map[string]int // of a reference: 1 while it is followed, 2 when it is known to end
}

// parts takes from left what a schema comes to with its references written out: below 0 it is
// more than that. They were checked to lead somewhere.
func (c *refs) parts(v any, left int) int {
	left--
	switch v := v.(type) {
	case map[string]any:
		for key, w := range v {
			if ref, ok := w.(string); ok && key == "$ref" {
				w, _ = c.find(ref)
			}
			if left < 0 {
				return left
			}
			left = c.parts(w, left)
		}
	case []any:
		for _, w := range v {
			if left < 0 {
				return left
			}
			left = c.parts(w, left)
		}
	}
	return left
}

// all checks every reference that stands anywhere in a schema.
func (c *refs) all(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["$dynamicRef"]; ok {
			return errors.New("$dynamicRef is not understood: use $ref")
		}
		if err := c.same(v); err != nil {
			return err
		}
		for _, w := range v {
			if err := c.all(w); err != nil {
				return err
			}
		}
	case []any:
		for _, w := range v {
			if err := c.all(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// same follows what a schema says of the very value it is for: those chains must end.
func (c *refs) same(schema any) error {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		if err := c.follow(ref); err != nil {
			return err
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else"} {
		list, ok := s[key].([]any)
		if !ok {
			list = []any{s[key]}
		}
		for _, w := range list {
			if err := c.same(w); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *refs) follow(ref string) error {
	switch c.state[ref] {
	case 1:
		return fmt.Errorf("%s refers to itself", ref)
	case 2:
		return nil
	}
	c.state[ref] = 1
	target, err := c.find(ref)
	if err != nil {
		return err
	}
	err = c.same(target)
	c.state[ref] = 2
	return err
}

// find resolves a reference into this schema. Others are refused: nothing is fetched, and
// anchors are a second way to write the same.
func (c *refs) find(ref string) (any, error) {
	if ref == "#" {
		return c.root, nil
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, fmt.Errorf("$ref %q: only references of the form #/… are understood", ref)
	}
	at := c.root
	for step := range strings.SplitSeq(path, "/") {
		m, ok := at.(map[string]any)
		if ok {
			at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		}
		if !ok {
			return nil, fmt.Errorf("$ref %q leads nowhere", ref)
		}
	}
	return at, nil
}
