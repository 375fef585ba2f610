package orchestrator

import (
	"encoding/json"
	"fmt"

	"skein/agent/model"
)

// A ChildModel is another model that children can be given, by its name.
type ChildModel struct {
	Name      string
	Client    model.Client
	Price     *model.Price // nil leaves costs unknown
	MaxTokens int          // limit of one reply; 0: that of the run
	Largest   int          // see [Options]
}

// An engine is a model as the agents of a run use it, with the run's tools in its dialect.
type engine struct {
	ChildModel
	tools json.RawMessage
}

// engines lists the models of a run: its own, which has no name here, and those for children.
func (o Options) engines() ([]*engine, error) {
	all := []*engine{{ChildModel: ChildModel{Client: o.Client, Price: o.Price, MaxTokens: o.MaxTokens, Largest: o.Largest}}}
	named := map[string]bool{"": true}
	for _, m := range o.ChildModels {
		if named[m.Name] {
			return nil, fmt.Errorf("offer model %q to children: it has no name of its own", m.Name)
		}
		named[m.Name] = true
		defaults(&m.MaxTokens, o.MaxTokens)
		all = append(all, &engine{ChildModel: m})
	}
	for _, e := range all {
		if (o.BudgetUSD > 0 || o.ChildBudgetUSD > 0 || o.ConfirmUSD > 0) && e.Price == nil {
			name := e.Name
			defaults(&name, o.ModelName)
			return nil, fmt.Errorf("limit the cost of %s: its prices are unknown", name)
		}
	}
	return all, nil
}

// engine returns the model of that name, nil if there is none.
func (r *run) engine(name string) *engine {
	for _, e := range r.engines {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// encode puts the tools into the dialect of each model.
func (r *run) encode(specs []model.Tool) (err error) {
	for _, e := range r.engines {
		if e.tools, err = e.Client.EncodeTools(specs); err != nil {
			return err
		}
	}
	return nil
}

// engineOf returns the model of a child: its parent's, unless another one is named.
func (n *node) engineOf(name string) *engine {
	if name == "" {
		return n.engine
	}
	return n.run.engine(name)
}

// adopt returns messages of an agent of another model as this one is sent them.
func (e *engine) adopt(messages []model.Message, of *engine) ([]model.Message, error) {
	if e == of {
		return messages, nil
	}
	t, _, err := model.NewTranscript(of.Client, messages...).Translate(e.Client)
	if err != nil {
		return nil, err
	}
	return t.Messages(), nil
}
