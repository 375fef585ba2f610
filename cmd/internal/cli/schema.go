package cli

import (
	"errors"
	"fmt"
	"strings"
)

// schemaDepth is how deeply a schema may be nested. Deeper ones take the validator minutes.
const schemaDepth = 100

// checkSchema refuses what the validator would not survive: schemas that refer to themselves
// without going into the value, and ones that are nested very deeply.
func checkSchema(root any) error {
	if nested(root, 0) {
		return fmt.Errorf("it is nested more than %d deep", schemaDepth)
	}
	c := &refs{root: root, state: map[string]int{}}
	return c.all(root)
}

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

// refs follows local references.
type refs struct {
	root  any
	state map[string]int // of a reference: 1 while it is followed, 2 when it is known to end
}

// all checks every reference that stands anywhere in a schema.
func (c *refs) all(v any) error {
	switch v := v.(type) {
	case map[string]any:
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

var errNoSchema = errors.New("a JSON Schema is an object, or true or false")
