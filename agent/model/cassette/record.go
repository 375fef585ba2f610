package cassette

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"skein/agent/model"
)

// Recorder returns a client that asks c and keeps every exchange in the folder dir, which is
// made if need be and must not hold a recording. Close it when the run is over.
func Recorder(c model.Client, dir string, m Masker) (*Recording, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("record to %s: %w", dir, err)
	}
	switch found, err := filepath.Glob(filepath.Join(escape(dir), "*.jsonl")); {
	case err != nil:
		return nil, fmt.Errorf("record to %s: %w", dir, err)
	case len(found) > 0:
		return nil, &fault{"record to " + dir + ": it holds a recording already", "name another folder, or remove this one"}
	}
	return &Recording{Client: c, dir: dir, mask: m, agents: map[string]*track{}}, nil
}

var special = regexp.MustCompile(`[\\*?\[]`)

// escape makes a path match itself alone.
func escape(path string) string { return special.ReplaceAllString(path, `\$0`) }

// A fault is an error that the user can act on.
type fault struct{ what, next string }

func (f *fault) Error() string { return f.what }

// Hint says what to do now.
func (f *fault) Hint() string { return f.next }

// A Recording is a client that keeps its exchanges. It encodes as the client it wraps.
type Recording struct {
	model.Client
	dir  string
	mask Masker

	mu     sync.Mutex // guards the fields just below
	agents map[string]*track
	failed error // the first failure to write; nothing is kept after it
}

var _ model.Client = (*Recording)(nil)

// A track is what was kept of one agent.
type track struct {
	file   *os.File
	before []model.Message // of the last request
	chain  chain           // of before, as it was kept
	tools  string
}

// Exchange implements [model.Client]. That an exchange could not be kept is told by Close:
// its reply was paid for, and the run goes on.
func (r *Recording) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	got, err := r.Client.Exchange(ctx, req)
	if ctx.Err() == nil {
		r.keep(req, got, err)
	}
	return got, err
}

// Close ends the recording. It returns the first failure to write, after which nothing was
// kept: what is on disk is then the beginning of the run.
func (r *Recording) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.failed
	for _, t := range r.agents {
		err = errors.Join(err, t.file.Close())
	}
	r.agents, r.failed = nil, errors.Join(err, os.ErrClosed)
	return err
}

func (r *Recording) keep(req model.Request, got model.Reply, failed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return
	}
	if err := r.keepLocked(req, got, failed); err != nil {
		r.failed = fmt.Errorf("record agent %s, turn %d: %w", req.Origin.Agent, req.Origin.Turn, err)
	}
}

func (r *Recording) keepLocked(req model.Request, got model.Reply, failed error) error {
	t, err := r.trackLocked(req.Origin.Agent)
	if err != nil {
		return err
	}
	n := repeated(t.before, req.Messages)
	e := exchange{Turn: req.Origin.Turn, Front: t.chain.front(n), New: []string{}, MaxTokens: req.MaxTokens}
	for _, m := range req.Messages[n:] {
		e.New = append(e.New, masked(r.mask, m.Raw))
	}
	t.before, t.chain = req.Messages, t.chain.to(n, e.New)
	if tools := masked(r.mask, req.Tools); tools != t.tools {
		t.tools, e.Tools = tools, &tools
	}
	e.Schema = masked(r.mask, req.Schema)
	if failed != nil {
		e.Error = failureOf(r.Dialect(), failed)
	} else {
		e.Reply = &reply{got.Message, got.Finish, got.Why, got.Usage}
		// As it will stand in the next request.
		e.Reply.Message.Raw = json.RawMessage(masked(r.mask, got.Message.Raw))
	}
	return r.write(t.file, e)
}

func failureOf(provider string, err error) *failure {
	known := (*model.Error)(nil)
	if !errors.As(err, &known) {
		return &failure{Provider: provider, Message: err.Error()}
	}
	return &failure{
		Provider: known.Provider, Status: known.Status, Message: known.Message, Advice: known.Advice,
		Again: known.Again, RetryAfter: known.RetryAfter, TooLong: known.TooLong, Usage: known.Usage,
	}
}

var ordinal = regexp.MustCompile(`^\d+(\.\d+)*$`)

// trackLocked returns the track of an agent, and begins its file if it is new.
func (r *Recording) trackLocked(agent string) (*track, error) {
	if t := r.agents[agent]; t != nil {
		return t, nil
	}
	if !ordinal.MatchString(agent) {
		return nil, fmt.Errorf("%q is no ordinal of an agent", agent)
	}
	f, err := os.OpenFile(fileOf(r.dir, agent), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	t := &track{file: f}
	r.agents[agent] = t
	return t, r.write(f, header{version, r.Dialect(), agent})
}

// write writes one line. All of it is masked: what is not compared, too.
func (r *Recording) write(f *os.File, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = f.Write(append(r.mask.Written(line), '\n'))
	return err
}
