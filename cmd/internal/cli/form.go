package cli

import (
	"errors"
	"os"

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
		return nil, bad(reason(err))
	}
	form, err := agent.NewForm(data)
	if err != nil {
		return nil, bad(err)
	}
	return form, nil
}

// reason is what is wrong with a path that was named already.
func reason(err error) error {
	if inner := (*os.PathError)(nil); errors.As(err, &inner) {
		return inner.Err
	}
	return err
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
