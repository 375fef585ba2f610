package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema validates the arguments of one tool. It goes through them in a fixed order, so that
// the same bad arguments are answered by the same bytes.
type schema struct {
	text  json.RawMessage
	names []string // as the struct has them
	need  []string
	props map[string]*jsonschema.Resolved
}

// schemas holds what was inferred, by type: a type's schema never changes, each agent has tools
// of its own, and to infer one takes as long as many calls.
var schemas sync.Map

func infer[In any]() (*schema, error) {
	of := reflect.TypeFor[In]()
	if known, ok := schemas.Load(of); ok {
		return known.(*schema), nil
	}
	s, err := inferNew[In]()
	if err == nil {
		schemas.Store(of, s)
	}
	return s, err
}

func inferNew[In any]() (*schema, error) {
	root, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, err
	}
	if root.Type != "object" {
		return nil, errors.New("arguments must be a struct")
	}
	s := &schema{names: root.PropertyOrder, need: root.Required, props: map[string]*jsonschema.Resolved{}}
	for _, name := range s.names {
		p := root.Properties[name]
		// A pointer or slice is inferred as nullable. Models are shown the plain type;
		// decode takes a null for an argument that was left out.
		if len(p.Types) == 2 && p.Types[0] == "null" {
			p.Type, p.Types = p.Types[1], nil
		}
		if s.props[name], err = p.CloneSchemas().Resolve(nil); err != nil {
			return nil, fmt.Errorf("argument %s: %w", name, err)
		}
	}
	s.text, err = json.Marshal(root)
	return s, err
}

// An argumentsError says what is wrong with the arguments of a call.
type argumentsError struct {
	faults []string
	schema json.RawMessage
}

func (e *argumentsError) Error() string { return "bad arguments: " + strings.Join(e.faults, "; ") }

func (e *argumentsError) Hint() string {
	return "nothing was done; call again with arguments of this schema: " + string(e.schema)
}

// decode fills in, a pointer to the tool's struct. Arguments that are no JSON, no object, or
// do not fit are an [argumentsError].
func (s *schema) decode(args json.RawMessage, in any) error {
	// Some providers send nothing at all for a call without arguments.
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return s.fault(notObject(args, err))
	}
	faults := s.check(given)
	if len(faults) > 0 {
		return s.fault(faults...)
	}
	// Not args itself: of a key that is there twice, exactly the value that was checked.
	plain, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(plain, in)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return s.fault(fmt.Sprintf("%s: %s cannot be used", wrong.Field, wrong.Value)) // such as 1e30 for an integer
	} else if err != nil {
		return s.fault(err.Error())
	}
	return nil
}

func (s *schema) fault(faults ...string) error {
	return &argumentsError{faults: faults, schema: s.text}
}

func notObject(args json.RawMessage, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("no JSON: %v at byte %d", err, syntax.Offset)
	}
	return "JSON, but no object: " + clip(string(args))
}

// check returns the faults of the arguments; optional ones given as null are taken out.
func (s *schema) check(given map[string]json.RawMessage) (faults []string) {
	for _, name := range s.names {
		raw, ok := given[name]
		if ok && string(raw) == "null" && !slices.Contains(s.need, name) {
			delete(given, name)
			continue
		}
		if !ok {
			if slices.Contains(s.need, name) {
				faults = append(faults, name+" is missing")
			}
			continue
		}
		if string(raw) == "null" {
			faults = append(faults, name+" is null")
			continue
		}
		var v any
		err := json.Unmarshal(raw, &v)
		if err == nil {
			err = s.props[name].Validate(v)
		}
		if err != nil {
			what := strings.TrimPrefix(err.Error(), "validating root: ")
			faults = append(faults, name+": "+clip(strings.TrimPrefix(what, "type: ")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := s.props[name]; ok {
			continue
		}
		what := fmt.Sprintf("%s is unknown", clip(name))
		if near := Nearest(name, s.names, 1); len(near) > 0 {
			what += ", did you mean " + near[0]
		}
		faults = append(faults, what)
	}
	return faults
}

// clip keeps a fault short when the model's text is not.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
