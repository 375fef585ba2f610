package cli

import (
	"context"
	"errors"

	"skein/cmd/internal/provider"
	"skein/orchestrator"
)

// children connects to the models that the configuration lists for subagents. One that cannot
// be had is left out, and the user told why: the run can do without. The connections are to be
// closed. Parameters of the command line are meant for the run's model; these have their
// providers' own.
func (m *connected) children(ctx context.Context, o runOptions, notes *notes) (models []orchestrator.ChildModel, closeAll func() error) {
	var links []*provider.Connection
	closeAll = func() (err error) {
		for _, l := range links {
			err = errors.Join(err, l.Close())
		}
		return err
	}
	if o.single || o.delegate == "off" || len(m.config.ChildModels) == 0 {
		return nil, closeAll
	}
	if o.model.recordTo != "" || o.model.replayFrom != "" {
		notes.say("subagents are given no other models: a recording has one")
		return nil, closeAll
	}
	for _, name := range m.config.ChildModels {
		one := &connected{config: m.config, choice: provider.Choice{Model: name, Why: m.config.Path}, row: m.config.Row(name)}
		if err := one.connectChild(ctx, o.inDollars(), m.asked); err != nil {
			notes.say("subagents are not given " + name + ": " + err.Error())
			continue
		}
		links = append(links, one.link)
		models = append(models, orchestrator.ChildModel{
			Name: name, Client: one.link, Price: one.row.Price, MaxTokens: one.maxTokens(o.maxTokens, o.verbose, notes.say),
		})
	}
	return models, closeAll
}

// connectChild connects to a model for children. The flag that sets a limit in dollars, if there
// is one, needs its prices.
func (m *connected) connectChild(ctx context.Context, flag string, asked provider.Options) (err error) {
	if flag != "" && m.row.Price == nil {
		return errors.New("its prices are not known, and " + flag + " needs them")
	}
	m.link, err = provider.Connect(ctx, m.choice, asked)
	return err
}
