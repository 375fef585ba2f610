package config

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// The types here read values of the file. They do it themselves because the library's own
// reading loses the line of a bad one, or takes what cannot be meant.

func bad(node ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: node.GetToken()}
}

// span is a time such as 5m or 90s; 0 means none, which is kept as -1: the zero value says
// nothing.
type span time.Duration

// UnmarshalYAML reads the time.
func (s *span) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return bad(node, "%q is no time such as 5m or 90s", text)
	case d == 0:
		d = -1
	}
	*s = span(d)
	return nil
}

// onOff is on or off; YAML's true and false mean the same.
type onOff string

// UnmarshalYAML reads the word.
func (o *onOff) UnmarshalYAML(node ast.Node) error {
	switch text := node.GetToken().Value; text {
	case "on", "true":
		*o = "on"
	case "off", "false":
		*o = "off"
	default:
		return bad(node, "%q is neither on nor off", text)
	}
	return nil
}

// tokens is a number of tokens above zero.
type tokens int

// UnmarshalYAML reads the number.
func (t *tokens) UnmarshalYAML(node ast.Node) error {
	var n int
	if err := yaml.NodeToValue(node, &n); err != nil || node.Type() != ast.IntegerType || n <= 0 {
		return bad(node, "%q is no number of tokens", node.GetToken().Value)
	}
	*t = tokens(n)
	return nil
}

// dollars is an amount of money.
type dollars float64

// UnmarshalYAML reads the amount.
func (d *dollars) UnmarshalYAML(node ast.Node) error {
	var v float64
	number := node.Type() == ast.IntegerType || node.Type() == ast.FloatType
	if err := yaml.NodeToValue(node, &v); err != nil || !number || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return bad(node, "%q is no amount of dollars", node.GetToken().Value)
	}
	*d = dollars(v)
	return nil
}

// day is a date such as 2026-10-04.
type day string

// UnmarshalYAML reads the date.
func (d *day) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return bad(node, "%q is no date such as 2026-10-04", text)
	}
	*d = day(text)
	return nil
}

// names is a list of models, provider/name, each once.
type names []string

// UnmarshalYAML reads the names.
func (n *names) UnmarshalYAML(node ast.Node) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return bad(node, "child_models is a list of provider/name")
	}
	for _, each := range list.Values {
		name := each.GetToken().Value
		switch {
		case each.Type() != ast.StringType || !rowName.MatchString(name):
			return bad(each, "%q is not like provider/name", name)
		case slices.Contains(*n, name):
			return bad(each, "%s is there twice", name)
		}
		*n = append(*n, name)
	}
	return nil
}
