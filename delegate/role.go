package delegate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A Role is what a project says of a kind of subagent, in a file of its own. It is text of the
// repository: it takes away from what a child may do, and gives nothing.
type Role struct {
	Name        string
	Description string   // one line, for the parent
	Access      Access   // ReadOnly refuses writers; "" leaves it to the call
	Tools       []string // that alone the child may use; nil: all
	Model       string   // that the child is given, if the user lets children have it
	Body        string   // told to the child before its task
}

// A RoleError is a fault of a role's file.
type RoleError struct {
	Line int // 0: of the whole file
	Text string
}

func (e *RoleError) Error() string { return e.Text }

// RoleBytes is how large a role's file may be. Of its description the parent is shown so much:
// it is a part of every request.
const (
	RoleBytes        = 32 << 10
	matterBytes      = 4 << 10
	descriptionRunes = 200
)

// RoleName is how roles are named.
var RoleName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// front is the form of a role's front matter.
type front struct {
	Description string  `yaml:"description"`
	Access      word    `yaml:"access"`
	Tools       *[]word `yaml:"tools"`
	Model       string  `yaml:"model"`
}

// word is a plain value and its line in the file.
type word struct {
	text string
	line int
}

// UnmarshalYAML takes the word.
func (w *word) UnmarshalYAML(node ast.Node) error {
	w.text, w.line = node.GetToken().Value, node.GetToken().Position.Line+1
	return nil
}

// ParseRole reads a role from the text of its file: front matter between two lines of three
// dashes, and what the child is told. Tools are those that there are. Faults are [*RoleError]s.
func ParseRole(name string, text []byte, tools []string) (Role, error) {
	r := Role{Name: name}
	switch {
	case len(text) > RoleBytes:
		return r, &RoleError{Text: fmt.Sprintf("it has more than %d bytes", RoleBytes)}
	case !utf8.Valid(text):
		return r, &RoleError{Text: "it is no UTF-8"}
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	rest, opened := bytes.CutPrefix(text, []byte("---\n"))
	matter, body, closed := bytes.Cut(rest, []byte("\n---\n"))
	if !closed {
		matter, closed = bytes.CutSuffix(rest, []byte("\n---"))
	}
	switch {
	case !opened || !closed:
		return r, &RoleError{Line: 1, Text: "it does not begin with front matter between two lines of ---"}
	case len(matter) > matterBytes:
		return r, &RoleError{Line: 1, Text: fmt.Sprintf("its front matter has more than %d bytes", matterBytes)}
	}
	f, err := parseFront(matter)
	if err != nil {
		return r, err
	}
	r.Description, r.Access, r.Model, r.Body = inLine(f.Description, descriptionRunes), Access(f.Access.text), f.Model, strings.TrimSpace(string(body))
	switch {
	case r.Description == "":
		return r, &RoleError{Line: 1, Text: "it has no description"}
	case r.Access != "" && r.Access != ReadOnly && r.Access != Writing:
		return r, &RoleError{Line: f.Access.line, Text: fmt.Sprintf("access is %q, not read or write", oneLine(f.Access.text))}
	}
	if f.Tools == nil {
		return r, nil
	}
	r.Tools = []string{}
	for _, t := range *f.Tools {
		if !slices.Contains(tools, t.text) {
			return r, &RoleError{Line: t.line, Text: fmt.Sprintf("there is no tool %q; the tools are %s", oneLine(t.text), strings.Join(tools, ", "))}
		}
		r.Tools = append(r.Tools, t.text)
	}
	return r, nil
}

// parseFront reads front matter, whose first line is the file's second.
func parseFront(matter []byte) (front, error) {
	var f front
	parsed, err := parser.ParseBytes(matter, 0)
	if err != nil {
		return f, fault(err)
	}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		plain := &plainly{}
		ast.Walk(plain, doc.Body)
		if plain.fault != nil {
			return f, fault(plain.fault)
		}
	}
	if err := yaml.UnmarshalWithOptions(matter, &f, yaml.Strict()); err != nil {
		return f, fault(err)
	}
	return f, nil
}

// plainly refuses what lets a few lines stand for many.
type plainly struct{ fault error }

// Visit implements [ast.Visitor].
func (p *plainly) Visit(node ast.Node) ast.Visitor {
	if p.fault != nil {
		return nil
	}
	switch node.Type() {
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType:
		p.fault = &yaml.SyntaxError{Message: "anchors, aliases, merges and tags are not understood", Token: node.GetToken()}
		return nil
	}
	return p
}

// fault says the YAML library's errors in one line, with its number in the file.
func fault(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return &RoleError{Line: at.GetToken().Position.Line + 1, Text: at.GetMessage()}
	}
	return &RoleError{Line: 1, Text: oneLine(err.Error())}
}
