package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"skein/agent"
)

// form reads the value of --output-schema: a JSON Schema that the final answer has to fit. The
// path "" gives no form.
func form(path string) (*agent.Form, error) {
	if path == "" {
		return nil, nil
	}
	bad := func(err error) error {
		return &usageError{command: "run", text: "--output-schema " + path + ": " + err.Error(), hint: `it is a file with one JSON Schema, such as {"type": "object"}`}
	}
	data, err := readPlain(path)
	if err != nil {
		if inner := (*os.PathError)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, bad(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, bad(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil, bad(err)
	}
	switch plain.(type) {
	case map[string]any, bool:
	default:
		return nil, bad(errNoSchema)
	}
	if err := checkSchema(plain); err != nil {
		return nil, bad(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, bad(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, bad(err)
	}
	return &agent.Form{Schema: compact.Bytes(), Check: func(answer string) error {
		var value any
		if err := json.Unmarshal([]byte(strings.TrimSpace(answer)), &value); err != nil {
			return fmt.Errorf("it is no JSON value: %w", err)
		}
		return resolved.Validate(value)
	}}, nil
}

// readPlain reads a regular file: opening a pipe would wait for its other end.
func readPlain(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	return os.ReadFile(path)
}
