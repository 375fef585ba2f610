package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"skein/agent/model"
	"skein/agent/model/anthropic"
	"skein/agent/model/command"
	"skein/agent/model/ollama"
	"skein/agent/model/openai"
	"skein/agent/model/pace"
	"skein/agent/model/retry"
	"skein/agent/model/script"
	"skein/agent/model/text"
	"skein/cmd/internal/keys"
	"skein/cmd/internal/program"
)

// ScriptHint says what a script is.
const ScriptHint = `a script is a YAML file of rules, such as the one line "- say: done": skein help scripts`

// Options say how a model is asked.
type Options struct {
	Keys     *keys.Ring
	Getenv   func(string) string
	Stream   bool
	Params   model.Params
	RetryFor time.Duration // below 0: nothing is tried again
	AtOnce   int           // most exchanges at once [8]

	// Notice is told what the user should know of the way to the model. It may be called from
	// several goroutines at once.
	Notice func(text string)
}

// A Connection is a client and where it leads. Close it when it is no longer needed.
type Connection struct {
	model.Client
	Where string // the base URL as it may be shown, the program, or the recording
	close func() error
}

// Close gives up connections, and ends a script's server.
func (c *Connection) Close() error { return c.close() }

// Connect returns a client for the chosen model. It finds all faults that can be found without
// asking the model, and asks nothing.
func Connect(ctx context.Context, c Choice, o Options) (*Connection, error) {
	name, _ := c.split()
	p, ok := find(name)
	if !ok {
		return nil, fault("unknown provider "+name, "known are "+Names()+"; for any other place use openai/NAME with --base-url")
	}
	var link *Connection
	var err error
	switch p.speaks {
	case stdio:
		link, err = c.program(o)
	case scripted:
		link, err = c.script(ctx, o)
	default:
		link, err = c.remote(p, o)
	}
	if err != nil {
		return nil, err
	}
	first, most := o.atOnce(p, c.BaseURL)
	link.Client = retry.Client(pace.Client(link.Client, first, most), retry.Options{For: o.RetryFor})
	return link, nil
}

// atOnce is how many exchanges are made at once: to begin with, and at most. A model on the
// user's own machine is asked one thing at first, whatever it could take.
func (o Options) atOnce(p preset, baseURL string) (first, most int) {
	most = cmp.Or(o.AtOnce, 8)
	switch p.speaks {
	case stdio, scripted:
		return most, most
	default:
		if p.local || onLoopback(baseURL) {
			return 1, most
		}
		return most, most
	}
}

// remote connects to a provider by HTTP.
func (c Choice) remote(p preset, o Options) (*Connection, error) {
	_, name := c.split()
	if name == "" {
		return nil, fault("no model named", "name one, as in --model "+p.name+"/NAME")
	}
	key, err := "", error(nil)
	if p.keyVar != "" {
		if key, err = o.Keys.Get(p.keyVar); err != nil {
			return nil, err
		}
	}
	if key == "" && !p.local && c.BaseURL == "" {
		return nil, fault("no key for "+p.name, "set "+p.keyVar+" in the environment, or in a .env that git does not track")
	}
	if p.speaks == native {
		p.baseURL = ollamaURL(o.Getenv)
	}
	if c.BaseURL != "" {
		p.baseURL, p.limitField = c.BaseURL, ""
	}
	if key != "" && inTheOpen(p.baseURL) {
		return nil, fault("the key of "+p.name+" would be sent to "+shown(p.baseURL)+" unencrypted", "use https there; a server that needs no key is asked as vllm/NAME")
	}
	return p.client(name, key, o)
}

// onLoopback reports whether a base URL leads to this machine.
func onLoopback(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && loopback(u.Hostname())
}

// inTheOpen reports whether what is sent to a base URL can be read on its way: by plain HTTP, to
// another machine.
func inTheOpen(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && u.Scheme == "http" && !loopback(u.Hostname())
}

// A closer is a client that holds connections.
type closer interface {
	model.Client
	Close()
}

func (p preset) client(name, key string, o Options) (*Connection, error) {
	var client closer
	var err error
	switch p.speaks {
	case messages:
		client, err = anthropic.New(anthropic.Options{
			BaseURL: p.baseURL, Model: name, Name: p.name, Key: key, KeyVar: p.keyVar, Stream: o.Stream, Params: o.Params,
		})
	case native:
		client, err = ollama.New(ollama.Options{
			BaseURL: p.baseURL, Model: name, Name: p.name, Stream: o.Stream, Params: o.Params, Warning: o.Notice,
		})
	default:
		client, err = openai.New(openai.Options{
			BaseURL: p.baseURL, Model: name, Name: p.name, Key: key, KeyVar: p.keyVar, Stream: o.Stream, Params: o.Params,
			LimitField: p.limitField, Scripted: p.speaks == scripted,
		})
	}
	if err != nil {
		return nil, fault(err.Error(), "see the flags of the model in skein run --help")
	}
	return &Connection{newFallback(client, o.Notice), shown(p.baseURL), func() error { client.Close(); return nil }}, nil
}

// shown is a base URL without a query, which may hold a secret.
func shown(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return "" // the client would not have taken it
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// script serves the script at a path on loopback for as long as the connection lasts, or goes
// to a server that runs already.
func (c Choice) script(ctx context.Context, o Options) (*Connection, error) {
	_, path := c.split()
	p := preset{name: scriptName, speaks: scripted, baseURL: c.BaseURL}
	switch {
	case path == "" && c.BaseURL == "":
		return nil, fault("no script named", "name its file, as in --model script/turns.yaml")
	case path == "":
		return p.client(scriptName, "", o)
	case c.BaseURL != "":
		return nil, fault("both a script and a base URL", "--model script with --base-url asks a skein model serve that runs already")
	}
	s, err := script.Load(path)
	if err != nil {
		return nil, fault(err.Error(), ScriptHint)
	}
	server, err := script.Listen(ctx, s, "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve script %s: %w", path, err)
	}
	p.baseURL = server.URL()
	link, err := p.client(scriptName, "", o)
	if err != nil {
		_ = server.Close() // the fault is the parameters'
		return nil, err
	}
	release := link.close
	link.close = func() error { _ = release(); return server.Close() }
	return link, nil
}

// program asks a program, which has no calls of its own.
func (c Choice) program(o Options) (*Connection, error) {
	_, line := c.split()
	argv := strings.Fields(line)
	switch {
	case len(argv) == 0:
		return nil, fault("no program named", `name one with its arguments, as in --model "command/./my-model.sh --fast"`)
	case c.BaseURL != "":
		return nil, fault("both a program and a base URL", "a program answers by itself: leave --base-url away")
	case o.Params.Temperature != nil, o.Params.Seed != nil, o.Params.Reasoning != "", len(o.Params.Extra) > 0:
		return nil, fault("a program takes no parameters of requests", "give it arguments, as in --model \"command/"+argv[0]+" --fast\"")
	}
	client, err := command.New(command.Options{Argv: argv, Run: program.Run})
	if err != nil {
		return nil, fault(err.Error(), "see --model in skein run --help")
	}
	return &Connection{text.Client(client), line, func() error { return nil }}, nil
}
