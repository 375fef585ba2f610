// Package config reads the user's own configuration file: which model to ask and where, how
// patiently, and what is known of models.
//
// It is read strictly: an unknown key or a bad value is an error that names file and line, so
// that a slip of the pen is never taken for a wish.
//
// Non-goals: a project's configuration, which is a stranger's until it is trusted; keys, which
// are never written into a configuration.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Example is a file with everything in it.
const Example = `# the model, where --model and SKEIN_MODEL do not name one
model: vllm/our-model
base_url: http://127.0.0.1:8000/v1   # of this model only
retry_for: 10m
stream: on
child_models: [vllm/small-model]     # other models that subagents may be given
models:
  vllm/our-model:
    window: 131072                   # tokens
    output: 16384                    # of the largest reply
    date: 2026-11-30
    prices:                          # dollars for a million tokens
      input: 0.5
      cache_read: 0.05               # like input, where left out
      cache_write: 0.5               # like input, where left out
      output: 2
`

// A Config is what the file says. The zero value says nothing.
type Config struct {
	Path string // of the file, whether it is there or not

	Model    string        // provider/name
	BaseURL  string        // where that model answers; of no other model
	RetryFor time.Duration // 0: the file does not say; below 0: no retries
	Stream   string        // on, off, or "" where the file does not say

	ChildModels []string // provider/name, that subagents may be given

	rows map[string]Row
}

// An Error is a fault of the file.
type Error struct {
	Path string
	Line int // 0 where the file could not be read
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
}

// Hint says what the file may hold.
func (e *Error) Hint() string {
	return "the keys are model, base_url, retry_for, stream, child_models and models; docs/reference.md shows an example"
}

// Path is where the user's file is, whether there is one or not. Getenv is as [os.Getenv].
func Path(getenv func(string) string) string {
	// A relative folder is to be ignored, says the XDG specification; it would also be the project's.
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "skein", "config.yaml")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "skein", "config.yaml")
	}
	return ""
}

// Load reads the file at path. One that is not there says nothing; so does the path "".
// Faults are [*Error]s.
func Load(path string) (Config, error) {
	c := Config{Path: path}
	if path == "" {
		return c, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		if inner := (*os.PathError)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return c, &Error{Path: path, Text: err.Error()}
	}
	if err := c.parse(data); err != nil {
		return Config{Path: path}, err
	}
	return c, nil
}

// file is the form of the file.
type file struct {
	Model    string `yaml:"model"`
	BaseURL  string `yaml:"base_url"`
	RetryFor span   `yaml:"retry_for"`
	Stream   onOff  `yaml:"stream"`
	Children names  `yaml:"child_models"`
	Models   table  `yaml:"models"`
}

func (c *Config) parse(data []byte) error {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return c.fault(err)
	}
	bodies := 0
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if bodies++; bodies > 1 {
			return &Error{c.Path, doc.Body.GetToken().Position.Line, "more than one document"}
		}
	}
	if bodies == 0 {
		return nil
	}
	var f file
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return c.fault(err)
	}
	c.Model, c.BaseURL, c.RetryFor, c.Stream, c.rows = f.Model, f.BaseURL, time.Duration(f.RetryFor), string(f.Stream), f.Models
	c.ChildModels = f.Children
	return nil
}

// fault says the YAML library's errors in one line, with its number.
func (c *Config) fault(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return &Error{c.Path, at.GetToken().Position.Line, at.GetMessage()}
	}
	return &Error{c.Path, 1, err.Error()}
}
