package orchestrator

import (
	"errors"
	"fmt"
	"strings"

	"skein/agent"
	"skein/delegate"
	"skein/scheduler"
	"skein/tools/gate"
)

// readDelegation reads the arguments of a delegate_task call, and the form of the answer if
// they ask for one. The error tells the model what cannot be.
func (b *batch) readDelegation(args string) (d *delegate.Delegation, form *agent.Form, err error) {
	if d, err = b.run.offered.Read(args); err != nil {
		return nil, nil, err
	}
	if len(d.Paths) > 0 && b.place.tree == nil {
		return nil, nil, errors.New(delegate.Name + ": paths cannot be held here: writers work in your own tree. Leave paths away and name the files in the task")
	}
	if d.Schema == nil {
		return d, nil, nil
	}
	if form, err = agent.NewModelsForm(d.Schema); err != nil {
		return nil, nil, fmt.Errorf("%s: output_schema: %w. Nothing was delegated; give a JSON Schema such as {\"type\":\"object\",\"required\":[\"files\"]}", delegate.Name, err)
	}
	return d, form, nil
}

// mayDelegate reports whether the agent's own delegations would be accepted.
func (n *node) mayDelegate() bool {
	call := gate.Call{Tool: delegate.Name, Effect: scheduler.Read}
	return n.depth < n.run.o.MaxDepth && n.policy.Decide(call).Verdict == gate.Allow
}

// beyond says that a child changed what its task's paths do not cover; "" if it did not.
func (b *batch) beyond(c *child) string {
	var files []string
	for _, f := range c.changed() {
		files = append(files, strings.TrimPrefix(f, b.place.tree.Prefix))
	}
	if outside := c.d.Outside(files); len(outside) > 0 {
		return delegate.Beyond(outside)
	}
	return ""
}

// changed lists the files of a child's change, the old names of renamed ones among them.
func (c *child) changed() []string {
	var files []string
	for _, f := range c.change.Files {
		if f.From != "" {
			files = append(files, f.From)
		}
		files = append(files, f.Path)
	}
	return files
}

// shared lists the files of a child's change that its siblings changed, too. All children of a
// stage have been collected before the first of them settles. Resolvers are none of them.
func (b *batch) shared(c *child) []delegate.Shared {
	others := map[int][]string{}
	for _, o := range b.outcomes {
		if o.child != nil && o.child != c {
			others[o.child.d.Index] = o.child.changed()
		}
	}
	return delegate.Overlaps(c.changed(), others)
}
