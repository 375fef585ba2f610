// Package provider finds the model that a run works with, and connects to it: it knows the
// providers by name, where their keys come from, and which adapter speaks to each.
//
// What cannot work is found before anything is asked, as a [*Fault] that says what to do.
//
// Non-goals: what a model is asked; keeping connections between runs.
package provider

import (
	"strings"

	"skein/cmd/internal/keys"
)

// A Fault is a choice that cannot work. Nothing was asked, nothing was begun.
type Fault struct{ text, hint string }

func fault(text, hint string) error { return &Fault{text, hint} }

func (f *Fault) Error() string { return f.text }

// Hint says what to do instead.
func (f *Fault) Hint() string { return f.hint }

// protocol is what a provider speaks.
type protocol int

const (
	chat protocol = iota // OpenAI's chat completions
	messages
	native // Ollama's own
	stdio  // a program of the user
	scripted
)

// A preset is what is known of a provider by its name.
type preset struct {
	name    string
	speaks  protocol
	baseURL string
	keyVar  string // the environment variable that holds the key; "" sends none
	local   bool   // works without a key

	limitField string // of a reply's length, where it is not the dialect's usual one; at baseURL only
}

const (
	ollamaName  = "ollama"
	scriptName  = "script"
	commandName = "command"
)

// presets are the providers, in the order of the help.
func presets() []preset {
	return []preset{
		{name: "openai", baseURL: "https://api.openai.com/v1", keyVar: "OPENAI_API_KEY", limitField: "max_completion_tokens"},
		{name: "anthropic", speaks: messages, baseURL: "https://api.anthropic.com", keyVar: "ANTHROPIC_API_KEY"},
		{name: "deepseek", baseURL: "https://api.deepseek.com/v1", keyVar: "DEEPSEEK_API_KEY"},
		{name: "openrouter", baseURL: "https://openrouter.ai/api/v1", keyVar: "OPENROUTER_API_KEY"},
		{name: ollamaName, speaks: native, local: true},
		{name: "lmstudio", baseURL: "http://localhost:1234/v1", local: true},
		{name: "vllm", baseURL: "http://localhost:8000/v1", local: true},
		{name: commandName, speaks: stdio, local: true},
		{name: scriptName, speaks: scripted, local: true},
	}
}

func find(name string) (preset, bool) {
	for _, p := range presets() {
		if p.name == name {
			return p, true
		}
	}
	return preset{}, false
}

// Names lists the providers for help and errors.
func Names() string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// A Key is the variable that holds a provider's key.
type Key struct{ Provider, Variable string }

// Keys lists the variables that hold keys, in the order of the providers.
func Keys() []Key {
	var all []Key
	for _, p := range presets() {
		if p.keyVar != "" {
			all = append(all, Key{p.name, p.keyVar})
		}
	}
	return all
}

// Secrets returns what is to be masked, as [keys.Secrets]: the keys of the providers are secret
// whatever they look like.
func Secrets(dir string, environ []string) []string {
	var variables []string
	for _, k := range Keys() {
		variables = append(variables, k.Variable)
	}
	return keys.Secrets(dir, environ, variables...)
}

// withKey lists the providers that a key is there for.
func withKey(ring *keys.Ring) []string {
	var names []string
	for _, k := range Keys() {
		if v, err := ring.Get(k.Variable); err == nil && v != "" {
			names = append(names, k.Provider)
		}
	}
	return names
}
