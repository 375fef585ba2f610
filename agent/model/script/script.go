// Package script is a model whose replies are written down: a real HTTP server on loopback
// that answers from a YAML script. It speaks chat completions, Anthropic's Messages and
// Ollama's own protocol, streamed and not, and refuses what their servers refuse.
//
// A script is a list of rules; the first whose when-part fits a request answers it:
//
//	# a comment, as YAML has them
//	- when: {agent: "0", turn: 1}
//	  call: {delegate_task: {task: "list the tests", access: read}}
//	- when: {agent: "0.*", result: "exit=(?P<code>[0-9]+)"}
//	  say: "it ended with ${code}"
//	- say: done
//
// The same requests get the same replies, byte for byte; only the cache figures depend on
// what was asked before. The server also simulates a provider's prefix cache.
package script

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A Script is a list of rules. It is not changed once parsed.
type Script struct {
	rules []rule
}

// A rule answers the requests that its when-part fits. Texts of the answer may hold
// ${1} or ${name}, what the patterns of the when-part captured; groups are counted through
// task, user, result and conversation. Other ${…} stay as they are.
type rule struct {
	line int

	When when `yaml:"when"`

	Say       *string         `yaml:"say"`
	Call      yaml.MapSlice   `yaml:"call"`     // one tool and its arguments
	Calls     []yaml.MapSlice `yaml:"calls"`    // several, each like Call
	CallRaw   *rawCall        `yaml:"call_raw"` // comes last; its arguments are any text
	Reasoning string          `yaml:"reasoning"`
	Refusal   string          `yaml:"refusal"`
	Finish    string          `yaml:"finish"` // default stop, or tool_calls; protocols put the usual words in their own
	Usage     usage           `yaml:"usage"`

	Latency pause `yaml:"latency"` // before the first byte

	// How the body is sent.
	KeepAlive bool  `yaml:"keepalive"` // with what the provider sends while the model thinks
	CRLF      bool  `yaml:"crlf"`      // lines of a stream end in CR LF
	Split     int   `yaml:"split"`     // in writes of so many bytes, which cut lines and characters anywhere
	Slow      pause `yaml:"slow"`      // so long before each write

	// Faults.
	Status         int     `yaml:"status"`           // default 200
	RetryAfter     string  `yaml:"retry_after"`      // the header: seconds or a date
	RetryAfterDate *int    `yaml:"retry_after_date"` // the header as the date in so many seconds
	Body           *string `yaml:"body"`             // instead of a reply or an error
	Garbage        bool    `yaml:"garbage"`          // the body is no JSON; with a reply, one place of it is malformed
	Cut            cut     `yaml:"cut"`              // the connection ends after so many bytes of the body, or true: in its middle
}

type rawCall struct {
	Name      string `yaml:"name"`
	Arguments string `yaml:"arguments"`
}

// usage gives token counts instead of those that follow from the bytes.
type usage struct {
	Input     *int64 `yaml:"input"`
	Output    *int64 `yaml:"output"`
	Reasoning *int64 `yaml:"reasoning"`
}

// pause is a duration such as 1s or 250ms.
type pause time.Duration

// UnmarshalYAML reads the duration; the library's own reading loses the line of a bad one.
func (p *pause) UnmarshalYAML(node ast.Node) error {
	d, err := time.ParseDuration(node.GetToken().Value)
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	*p = pause(d)
	return nil
}

// cut is where a body is cut off: a number of bytes, or true for its middle.
type cut struct {
	given, middle bool
	bytes         int
}

// UnmarshalYAML reads the place.
func (c *cut) UnmarshalYAML(node ast.Node) error {
	switch n := node.(type) {
	case *ast.BoolNode:
		*c = cut{given: n.Value, middle: n.Value}
		return nil
	case *ast.IntegerNode:
		if err := yaml.NodeToValue(node, &c.bytes); err == nil && c.bytes >= 0 {
			c.given = true
			return nil
		}
	}
	return &yaml.SyntaxError{Message: "cut is a number of bytes, or true", Token: node.GetToken()}
}

// at is how many bytes of a body of that size are sent.
func (c cut) at(size int) int {
	switch {
	case !c.given:
		return size
	case c.middle:
		return size / 2
	}
	return min(c.bytes, size)
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	s, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("load script %s: %w", path, err)
	}
	return s, nil
}

// Parse reads a script. Errors begin with the line they are about.
func Parse(data []byte) (*Script, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, lineOf(err)
	}
	items, err := list(file)
	if err != nil {
		return nil, err
	}
	var rules []rule
	if err := yaml.UnmarshalWithOptions(data, &rules, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, lineOf(err)
	}
	if len(rules) != len(items.Values) {
		return nil, fmt.Errorf("line 1: read %d rules of %d", len(rules), len(items.Values))
	}
	for i := range rules {
		rules[i].line = items.Values[i].GetToken().Position.Line
		if err := rules[i].check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", rules[i].line, err)
		}
	}
	return &Script{rules: rules}, nil
}

// list finds the list of rules that a script has to be.
func list(file *ast.File) (*ast.SequenceNode, error) {
	var found *ast.SequenceNode
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		seq, ok := doc.Body.(*ast.SequenceNode)
		line := doc.Body.GetToken().Position.Line
		switch {
		case found != nil:
			return nil, fmt.Errorf("line %d: a script is one document", line)
		case !ok:
			return nil, fmt.Errorf("line %d: a script is a list of rules, each beginning with \"- \"", line)
		}
		found = seq
	}
	if found == nil || len(found.Values) == 0 {
		return nil, errors.New("line 1: the script has no rules")
	}
	return found, nil
}

// lineOf says the YAML library's errors in one line.
func lineOf(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return fmt.Errorf("line %d: %s", at.GetToken().Position.Line, at.GetMessage())
	}
	return err
}
