package cli

import (
	"context"
	"fmt"
	"strings"

	"skein/agent/model"
	"skein/agent/model/openai"
	"skein/agent/model/script"
)

// A preset is what is known of a provider by its name.
type preset struct {
	name    string
	baseURL string
	keyVar  string // the environment variable that holds the key; "" sends none
	local   bool   // works without a key
}

// presets are the providers that speak the OpenAI protocol, in the order of the help.
var presets = []preset{
	{name: "openai", baseURL: "https://api.openai.com/v1", keyVar: "OPENAI_API_KEY"},
	{name: "deepseek", baseURL: "https://api.deepseek.com/v1", keyVar: "DEEPSEEK_API_KEY"},
	{name: "openrouter", baseURL: "https://openrouter.ai/api/v1", keyVar: "OPENROUTER_API_KEY"},
	{name: "lmstudio", baseURL: "http://localhost:1234/v1", local: true},
	{name: "vllm", baseURL: "http://localhost:8000/v1", local: true},
}

// scripted is the provider whose name is followed by the path of a script.
const scripted = "script"

const scriptHint = `a script is a YAML file of rules, such as the one line "- say: done"`

// A choice of model: provider/name, and where it answers if not at the provider's usual place.
type modelChoice struct{ model, baseURL string }

// connect returns a client for the chosen model, and what is to be done when it is no longer
// needed. It finds all faults that can be found without asking the model.
func (m modelChoice) connect(ctx context.Context, getenv func(string) string) (model.Client, func() error, error) {
	provider, name, _ := strings.Cut(m.model, "/")
	if m.model == "" {
		return nil, nil, m.fault("no model configured", "name one with --model provider/name or SKEIN_MODEL; skein demo works without")
	}
	if provider == scripted {
		return m.script(ctx, name)
	}
	for _, p := range presets {
		if p.name == provider {
			return m.preset(p, name, getenv)
		}
	}
	return nil, nil, m.fault("unknown provider "+provider, "known are "+providers()+"; for any other place use openai/NAME with --base-url")
}

func (m modelChoice) preset(p preset, name string, getenv func(string) string) (model.Client, func() error, error) {
	if name == "" {
		return nil, nil, m.fault("no model named", "name one, as in --model "+p.name+"/NAME")
	}
	o := openai.Options{BaseURL: p.baseURL, Model: name, Name: p.name, KeyVar: p.keyVar}
	if p.keyVar != "" {
		o.Key = getenv(p.keyVar)
	}
	if o.Key == "" && !p.local && m.baseURL == "" {
		return nil, nil, m.fault("no key for "+p.name, "set "+p.keyVar+" in the environment")
	}
	if m.baseURL != "" {
		o.BaseURL = m.baseURL
	}
	return m.client(o)
}

// script serves the script at path on loopback for as long as the run lasts, or goes to a
// server that runs already.
func (m modelChoice) script(ctx context.Context, path string) (model.Client, func() error, error) {
	o := openai.Options{BaseURL: m.baseURL, Model: scripted, Name: scripted, Scripted: true}
	switch {
	case path == "" && m.baseURL == "":
		return nil, nil, m.fault("no script named", "name its file, as in --model script/turns.yaml")
	case path == "":
		return m.client(o)
	case m.baseURL != "":
		return nil, nil, m.fault("both a script and a base URL", "--model script with --base-url asks a skein model serve that runs already")
	}
	s, err := script.Load(path)
	if err != nil {
		return nil, nil, m.fault(err.Error(), scriptHint)
	}
	server, err := script.Listen(ctx, s, "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("serve script %s: %w", path, err)
	}
	o.BaseURL = server.URL()
	client, err := openai.New(o)
	return client, server.Close, err
}

func (m modelChoice) client(o openai.Options) (model.Client, func() error, error) {
	client, err := openai.New(o)
	if err != nil {
		return nil, nil, m.fault(err.Error(), "see --model and --base-url in skein run --help")
	}
	return client, func() error { client.Close(); return nil }, nil
}

func (modelChoice) fault(text, hint string) error {
	return &usageError{command: "run", text: text, hint: hint}
}

func providers() string {
	names := make([]string, 0, len(presets)+1)
	for _, p := range presets {
		names = append(names, p.name)
	}
	return strings.Join(append(names, scripted), ", ")
}
