package provider

import (
	"context"
	"strings"

	"skein/agent/model/ollama"
	"skein/cmd/internal/keys"
)

// A State is how things stand with a provider, in words. It never holds a key.
type State struct{ Provider, Text string }

// States tells of each provider whether its key is there, or where it would be looked for.
// Only Ollama is asked: for its models.
func States(ctx context.Context, ring *keys.Ring, getenv func(string) string) []State {
	var all []State
	for _, p := range presets() {
		text := ""
		switch {
		case p.speaks == native:
			text = ollamaState(ctx, ollamaURL(getenv))
		case p.speaks == stdio:
			text = "a program of yours"
		case p.speaks == scripted:
			text = "a script of yours"
		case p.keyVar == "":
			text = "needs no key; asked at " + p.baseURL
		default:
			text = keyState(ring, p.keyVar)
		}
		all = append(all, State{p.name, text})
	}
	return all
}

func keyState(ring *keys.Ring, name string) string {
	switch value, err := ring.Get(name); {
	case err != nil:
		return "no key: " + err.Error()
	case value == "":
		return "no key: " + name + " is not set"
	}
	return "key in " + name
}

func ollamaState(ctx context.Context, url string) string {
	names, err := ollama.List(ctx, url)
	switch {
	case err != nil:
		return "does not answer at " + url
	case len(names) == 0:
		return "answers at " + url + " and has no model"
	}
	return "answers at " + url + " with " + strings.Join(names, ", ")
}
