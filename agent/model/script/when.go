package script

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// when is the condition of a rule; what it does not name may be anything.
type when struct {
	// Agent and Turn come from the header Skein-Agent; a request without it fits neither.
	Agent agents `yaml:"agent"`
	Turn  *int   `yaml:"turn"` // which reply of this agent it is, from 1

	Task   pattern `yaml:"task"`   // in the last task (see taskMark), else in the last user message
	User   pattern `yaml:"user"`   // in the last user message
	Result pattern `yaml:"result"` // in the tool results since the last reply, joined by newlines

	// Conversation is sought in everything that was said, joined by newlines: the system
	// message, users, replies, calls as name and arguments, results.
	Conversation pattern `yaml:"conversation"`
}

// agents are ordinals or globs of them. A * stands for any text, dots too: "0.*" is every
// agent below the root.
type agents []string

// UnmarshalYAML reads one ordinal or a list. 0.10 without quotes is a number in YAML; its
// text is what was meant.
func (a *agents) UnmarshalYAML(node ast.Node) error {
	nodes := []ast.Node{node}
	if seq, ok := node.(*ast.SequenceNode); ok {
		nodes = seq.Values
	}
	for _, n := range nodes {
		switch n.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		default:
			return &yaml.SyntaxError{Message: "agent is an ordinal such as \"0.2\", a glob, or a list of them", Token: n.GetToken()}
		}
		glob := n.GetToken().Value
		if _, err := path.Match(glob, ""); err != nil {
			return &yaml.SyntaxError{Message: fmt.Sprintf("agent %q is no glob: %v", glob, err), Token: n.GetToken()}
		}
		*a = append(*a, glob)
	}
	return nil
}

// pattern is a regular expression, or nil.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML compiles the expression.
func (p *pattern) UnmarshalYAML(node ast.Node) error {
	var text string
	err := yaml.NodeToValue(node, &text)
	if err == nil {
		p.Regexp, err = regexp.Compile(text)
	}
	if err != nil {
		return &yaml.SyntaxError{Message: err.Error(), Token: node.GetToken()}
	}
	return nil
}

func (w *when) check() error {
	if w.Turn != nil && *w.Turn < 1 {
		return errors.New("turns are counted from 1")
	}
	var names []string
	for _, p := range []pattern{w.Task, w.User, w.Result, w.Conversation} {
		if p.Regexp == nil {
			continue
		}
		for _, name := range p.SubexpNames() {
			if name == "" {
				continue
			}
			if slices.Contains(names, name) {
				return fmt.Errorf("two groups are named %q", name)
			}
			names = append(names, name)
		}
	}
	return nil
}

// captures is what the groups of a rule's patterns matched, by number and by name.
type captures map[string]string

// match reports whether the request fits, and what the patterns captured.
func (w *when) match(r *request) (captures, bool) {
	fitsAgent := func(glob string) bool { ok, _ := path.Match(glob, r.agent); return ok } // globs are checked
	switch {
	case w.Agent != nil && (!r.named || !slices.ContainsFunc(w.Agent, fitsAgent)):
		return nil, false
	case w.Turn != nil && (!r.named || *w.Turn != r.turn):
		return nil, false
	}
	got, n := captures{}, 0
	for _, m := range []struct {
		pattern
		in      func() string
		present bool
	}{
		{w.Task, r.taskText, r.hasUser},
		{w.User, func() string { return r.user }, r.hasUser},
		{w.Result, func() string { return r.results }, r.hasResults},
		{w.Conversation, r.conversation, true},
	} {
		if m.Regexp == nil {
			continue
		}
		groups := m.FindStringSubmatch(m.in())
		if !m.present || groups == nil {
			return nil, false
		}
		for i, name := range m.SubexpNames() {
			if i == 0 {
				continue
			}
			n++
			got[strconv.Itoa(n)] = groups[i]
			if name != "" {
				got[name] = groups[i]
			}
		}
	}
	return got, true
}

var reference = regexp.MustCompile(`\$\{(\w+)\}`)

// expand puts what was captured in its places; unknown names are left alone.
func (c captures) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		if s, ok := c[ref[2:len(ref)-1]]; ok {
			return s
		}
		return ref
	})
}
