package provider

import (
	"context"
	"strings"
	"time"

	"skein/agent/model/ollama"
	"skein/cmd/internal/config"
	"skein/cmd/internal/keys"
)

// The variables that stand in for flags.
const (
	ModelVar   = "SKEIN_MODEL"
	BaseURLVar = "SKEIN_BASE_URL"
)

// A Choice is a model, and where it answers if not at its provider's usual place.
type Choice struct {
	Model   string // provider/name
	BaseURL string
	Why     string // who chose it, in words
}

func (c Choice) split() (provider, name string) {
	provider, name, _ = strings.Cut(c.Model, "/")
	return provider, name
}

// Sources are where a choice may come from, the first before the others.
type Sources struct {
	Model, BaseURL string // from flags
	Getenv         func(string) string
	Config         config.Config
	Keys           *keys.Ring
}

// ollamaTime is how long an Ollama on this machine may take to name its models, when nobody
// chose one: whatever else listens at its port is noticed at every start.
const ollamaTime = 200 * time.Millisecond

// Choose returns the model to work with: of the flags, else of the environment, else of the
// configuration, else the first one of an Ollama on this machine. A base URL belongs to the
// model of its own source or of a later one: the environment's or the configuration's leads no
// model of a flag, nor its key, to another place.
func Choose(ctx context.Context, s Sources) (Choice, error) {
	if s.Model != "" {
		return Choice{s.Model, s.BaseURL, "--model"}, nil
	}
	url := s.BaseURL
	if url == "" {
		url = s.Getenv(BaseURLVar)
	}
	switch env := s.Getenv(ModelVar); {
	case env != "":
		return Choice{env, url, ModelVar}, nil
	case s.Config.Model != "":
		if url == "" {
			url = s.Config.BaseURL
		}
		return Choice{s.Config.Model, url, s.Config.Path}, nil
	case url != "":
		return Choice{}, fault("a base URL and no model", "name the model that answers there, as in --model openai/NAME; skein demo works without")
	}
	short, cancel := context.WithTimeout(ctx, ollamaTime)
	defer cancel()
	if names, err := ollama.List(short, ollamaURL(s.Getenv)); err == nil && len(names) > 0 {
		return Choice{Model: ollamaName + "/" + names[0], Why: "an Ollama answers on this machine, and this is its first model"}, nil
	}
	hint := "name one with --model provider/name or " + ModelVar
	if there := withKey(s.Keys); len(there) > 0 {
		hint += " (there is a key for " + strings.Join(there, ", ") + ")"
	}
	return Choice{}, fault("no model configured", hint+", or see it work without one: skein demo")
}
