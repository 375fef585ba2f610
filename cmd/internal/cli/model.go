package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skein/agent/model"
	"skein/cmd/internal/config"
	"skein/cmd/internal/keys"
	"skein/cmd/internal/provider"
	"skein/tools/mask"
)

// modelOptions is what a command is told of its model by its flags.
type modelOptions struct {
	model, baseURL       string
	temperature, seed    string // "" leaves them to the provider
	params               []string
	reasoning, stream    string
	retryFor             time.Duration
	recordTo, replayFrom string

	atOnce   int           // most exchanges at once; 0 is as many as usual
	patience time.Duration // where --retry-for is not given; 0 is what the configuration says, or the flag's default
}

// choice defines the flags that choose the model.
func (o *modelOptions) choice(f *pflag.FlagSet) {
	f.StringVar(&o.model, "model", "", "`PROVIDER/NAME` ("+provider.ModelVar+"); skein model list names the providers")
	f.StringVar(&o.baseURL, "base-url", "", "`URL` where the model answers, if not at the usual one ("+provider.BaseURLVar+")")
}

// requests defines the flags that say how the model is asked.
func (o *modelOptions) requests(f *pflag.FlagSet) {
	f.StringVar(&o.temperature, "temperature", "", "`T` of the sampling")
	f.StringVar(&o.seed, "seed", "", "`N` for the sampling, where the provider has one")
	f.StringArrayVar(&o.params, "param", nil, "`NAME=JSON`, a further field of requests, such as top_p=0.9; may be repeated")
	f.StringVar(&o.reasoning, "reasoning", "", "`off|low|medium|high|N`, how long the model thinks; N is in tokens")
	choiceVar(f, &o.stream, "stream", "on", "whether replies come in pieces", "on", "off")
	f.DurationVar(&o.retryFor, "retry-for", 5*time.Minute, "how long a failing request is tried again; 0 is not at all")
}

// tapes defines the flags that keep a run's exchanges and play them again.
func (o *modelOptions) tapes(f *pflag.FlagSet) {
	f.StringVar(&o.recordTo, "record-to", "", "`DIR` outside of the project that keeps every exchange, secrets masked")
	f.StringVar(&o.replayFrom, "replay-from", "", "`DIR` whose exchanges are played again, offline; what differs ends the run")
}

// A connected model is all that is known of the model a command works with.
type connected struct {
	config  config.Config
	streams bool // replies are asked for in pieces
	params  model.Params
	choice  provider.Choice
	row     config.Row
	mask    *mask.Mask
	link    *provider.Connection
	asked   provider.Options // how models are asked, save the parameters
	date    time.Time        // of the recording that is played; zero for a run of today
}

// connect finds the model and connects to it. What cannot work is a fault of usage.
func (o modelOptions) connect(c *cobra.Command, dir string, notes *notes) (*connected, error) {
	switch {
	case o.recordTo != "" && o.replayFrom != "":
		return nil, usage(c, "both --record-to and --replay-from", "a recording that is played needs no other")
	case o.replayFrom != "" && o.model != "":
		return nil, usage(c, "both --model and --replay-from", "a recording names its model")
	case o.replayFrom != "":
		return o.replay(c, dir, notes)
	case o.recordTo != "" && inside(o.recordTo, dir):
		return nil, usage(c, "--record-to "+o.recordTo+": it lies inside the project", "name a folder outside of it, as in --record-to ../recording: what the model runs could change the recording")
	}
	found, ring, err := o.find(c, dir, notes)
	if err != nil {
		return nil, err
	}
	asked := provider.Options{
		Keys: ring, Getenv: os.Getenv, Notice: notes.say,
		Stream: o.stream == "on", RetryFor: o.retryFor, AtOnce: o.atOnce,
	}
	if said := found.config.Stream; said != "" && !c.Flags().Changed("stream") {
		asked.Stream = said == "on"
	}
	if said := cmp.Or(o.patience, found.config.RetryFor); said != 0 && !c.Flags().Changed("retry-for") {
		asked.RetryFor = said
	}
	found.streams = asked.Stream
	switch {
	case o.retryFor < 0:
		return nil, usage(c, fmt.Sprintf("--retry-for %v is less than 0s", o.retryFor), "as in --retry-for 5m; 0 is not at all")
	case asked.RetryFor == 0:
		asked.RetryFor = -1
	}
	found.asked = asked
	if asked.Params, err = o.parameters(c); err != nil {
		return nil, err
	}
	found.params = asked.Params
	if found.link, err = provider.Connect(c.Context(), found.choice, asked); err != nil {
		return nil, misuse(c, err)
	}
	if o.recordTo == "" {
		return found, nil
	}
	label := provider.Label{Model: found.choice.Model, Date: time.Now(), Params: found.params}
	if err := found.link.Record(o.recordTo, label, found.mask); err != nil {
		return nil, errors.Join(misuse(c, err), found.link.Close())
	}
	return found, nil
}

// inside reports whether a path, which need not exist, lies in a folder.
func inside(path, dir string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	// Links are followed as far as the path exists.
	for rest := ""; ; path = filepath.Dir(path) {
		if there, err := filepath.EvalSymlinks(path); err == nil {
			path = filepath.Join(there, rest)
			break
		}
		rest = filepath.Join(filepath.Base(path), rest)
	}
	if there, err := filepath.EvalSymlinks(dir); err == nil {
		dir = there
	}
	rel, err := filepath.Rel(dir, path)
	return err != nil || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// replay plays a recording in place of its model.
func (o modelOptions) replay(c *cobra.Command, dir string, notes *notes) (*connected, error) {
	file, err := config.Load(config.Path(os.Getenv))
	if err != nil {
		return nil, misuse(c, err)
	}
	found := &connected{config: file, mask: mask.New(provider.Secrets(dir, os.Environ()))}
	notes.mask = found.mask
	link, label, err := provider.Replay(o.replayFrom, found.mask)
	if err != nil {
		return nil, misuse(c, err)
	}
	asked, err := o.parameters(c)
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if !reflect.DeepEqual(asked, model.Params{}) && !reflect.DeepEqual(asked, label.Params) {
		return nil, errors.Join(usage(c, "the recording was made with other parameters", "leave --temperature, --seed, --reasoning and --param away: those of the recording stand"), link.Close())
	}
	found.link, found.date, found.params = link, label.Date, label.Params
	found.choice = provider.Choice{Model: label.Model, Why: "--replay-from"}
	found.row = file.Row(label.Model)
	return found, nil
}

// find finds the model, and what is known of it.
func (o modelOptions) find(c *cobra.Command, dir string, notes *notes) (*connected, *keys.Ring, error) {
	file, err := config.Load(config.Path(os.Getenv))
	if err != nil {
		return nil, nil, misuse(c, err)
	}
	found := &connected{config: file, mask: mask.New(provider.Secrets(dir, os.Environ()))}
	notes.mask = found.mask
	ring := keys.Open(c.Context(), dir, os.Getenv)
	if ring.Notice != "" {
		notes.say(ring.Notice)
	}
	found.choice, err = provider.Choose(c.Context(), provider.Sources{
		Model: o.model, BaseURL: o.baseURL, Getenv: os.Getenv, Config: file, Keys: ring,
	})
	if err != nil {
		return found, ring, misuse(c, err)
	}
	found.row = file.Row(found.choice.Model)
	return found, ring, nil
}

// parameters reads the flags that go to the provider in its own terms.
func (o modelOptions) parameters(c *cobra.Command) (model.Params, error) {
	p := model.Params{Reasoning: o.reasoning}
	if o.temperature != "" {
		t, err := strconv.ParseFloat(o.temperature, 64)
		if err != nil || t < 0 || math.IsInf(t, 0) || math.IsNaN(t) {
			return p, usage(c, fmt.Sprintf("--temperature %q is no number from 0", o.temperature), "as in --temperature 0.2")
		}
		p.Temperature = &t
	}
	if o.seed != "" {
		n, err := strconv.ParseInt(o.seed, 10, 64)
		if err != nil {
			return p, usage(c, fmt.Sprintf("--seed %q is no whole number", o.seed), "as in --seed 7")
		}
		p.Seed = &n
	}
	switch n, err := strconv.Atoi(o.reasoning); o.reasoning {
	case "", "off", "low", "medium", "high":
	default:
		if err != nil || n <= 0 {
			return p, usage(c, fmt.Sprintf("--reasoning %q is neither off, low, medium, high nor a number of tokens", o.reasoning), "as in --reasoning high")
		}
	}
	for _, param := range o.params {
		name, value, ok := strings.Cut(param, "=")
		switch _, twice := p.Extra[name]; {
		case !ok || name == "":
			return p, usage(c, fmt.Sprintf("--param %q is not like NAME=JSON", param), "as in --param top_p=0.9")
		case !json.Valid([]byte(value)):
			return p, usage(c, fmt.Sprintf("--param %s: %q is no JSON", name, value), `texts need quotes, as in --param 'user="ada"'`)
		case twice:
			return p, usage(c, "--param "+name+" is there twice", "give it once")
		}
		if p.Extra == nil {
			p.Extra = map[string]json.RawMessage{}
		}
		p.Extra[name] = json.RawMessage(value)
	}
	return p, nil
}
