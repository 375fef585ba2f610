package cassette

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"skein/agent/model"
)

// An Encoder encodes what the harness says, in the dialect of a recording. A client of that
// dialect is one; it is never asked for an exchange.
type Encoder interface {
	model.Encoder
	EncodeTools(tools []model.Tool) (json.RawMessage, error)
}

// Player returns a client that answers from the recording in dir, at once. A request that
// is not as it was recorded fails with a [*MismatchError], and so does every one after it,
// of whichever agent: what they would be told followed from another run.
func Player(dir string, enc Encoder, m Masker) (model.Client, error) {
	tapes, dialect, err := load(dir)
	if err != nil {
		return nil, err
	}
	if dialect != enc.Dialect() {
		return nil, &fault{
			fmt.Sprintf("open recording: %s is of dialect %s, not %s", dir, dialect, enc.Dialect()),
			"replay it with a model of the provider it was recorded with",
		}
	}
	p := &player{Encoder: enc, mask: m, heads: map[string]*playhead{}}
	for agent, t := range tapes {
		p.heads[agent] = &playhead{tape: t}
	}
	return p, nil
}

type player struct {
	Encoder
	mask Masker

	mu    sync.Mutex // guards the fields just below
	heads map[string]*playhead
	wrong error // the first request that differs
}

var _ model.Client = (*player)(nil)

// A playhead is where the replay of one agent is.
type playhead struct {
	tape   *tape
	next   int             // the exchange to come
	before []model.Message // of the last request, which was as recorded
	kept   []string        // the same, as recorded
	tools  string
}

// Exchange implements [model.Client].
func (p *player) Exchange(ctx context.Context, req model.Request) (model.Reply, error) {
	if ctx.Err() != nil {
		return model.Reply{}, ctx.Err()
	}
	e, err := p.find(req)
	if err != nil {
		return model.Reply{}, err
	}
	if f := e.Error; f != nil {
		return model.Reply{}, &model.Error{
			Provider: f.Provider, Status: f.Status, Message: f.Message, Advice: f.Advice,
			Again: f.Again, RetryAfter: f.RetryAfter, TooLong: f.TooLong, Usage: f.Usage,
		}
	}
	if req.Stream != nil && e.Reply.Message.Text != "" {
		req.Stream(model.Delta{Text: e.Reply.Message.Text})
	}
	return model.Reply{Message: e.Reply.Message, Finish: e.Reply.Finish, Why: e.Reply.Why, Usage: e.Reply.Usage}, nil
}

func (p *player) find(req model.Request) (exchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong != nil {
		return exchange{}, p.wrong
	}
	wrong := &MismatchError{Agent: req.Origin.Agent, Turn: req.Origin.Turn}
	h := p.heads[req.Origin.Agent]
	switch {
	case h == nil:
		wrong.What = "nothing of this agent was recorded"
	case h.next == len(h.tape.exchanges):
		wrong.File, wrong.Line, wrong.What = h.tape.file, h.next+1, "the recording ends here"
	default:
		wrong.File, wrong.Line = h.tape.file, h.next+2
		e := h.tape.exchanges[h.next]
		if wrong.What = h.compare(p.mask, e, req); wrong.What == "" {
			h.next++
			return e, nil
		}
	}
	p.wrong = wrong
	return exchange{}, wrong
}

// compare says how a request differs from the recorded one, "" if it does not.
func (h *playhead) compare(m Masker, e exchange, req model.Request) string {
	if e.Turn != req.Origin.Turn {
		return fmt.Sprintf("turn %d was recorded here", e.Turn)
	}
	// What both repeat was compared when it was new.
	n := min(repeated(h.before, req.Messages), e.Front.Messages)
	kept := append(h.kept[:e.Front.Messages], e.New...) // h.kept is not needed any more
	for i := n; i < len(kept) || i < len(req.Messages); i++ {
		switch {
		case i == len(kept):
			return fmt.Sprintf("message %d (%s) was not recorded: %s", i+1, req.Messages[i].Role, excerpt(masked(m, req.Messages[i].Raw), 0))
		case i == len(req.Messages):
			return fmt.Sprintf("message %d is missing: %s", i+1, excerpt(kept[i], 0))
		}
		if d := differ(kept[i], masked(m, req.Messages[i].Raw)); d != "" {
			return fmt.Sprintf("message %d (%s) %s", i+1, req.Messages[i].Role, d)
		}
	}
	tools := h.tools
	if e.Tools != nil {
		tools = *e.Tools
	}
	if d := differ(tools, masked(m, req.Tools)); d != "" {
		return "the tool list " + d
	}
	if d := differ(e.Schema, masked(m, req.Schema)); d != "" {
		return "the schema of the answer " + d
	}
	if e.MaxTokens != req.MaxTokens {
		return fmt.Sprintf("the reply limit is %d tokens, recorded %d", req.MaxTokens, e.MaxTokens)
	}
	h.before, h.kept, h.tools = req.Messages, kept, tools
	return ""
}

// differ says where two texts begin to differ, "" if they are the same.
func differ(recorded, asked string) string {
	if recorded == asked {
		return ""
	}
	at := 0
	for at < len(recorded) && at < len(asked) && recorded[at] == asked[at] {
		at++
	}
	return fmt.Sprintf("differs at byte %d: recorded %s, asked %s", at, excerpt(recorded, at), excerpt(asked, at))
}

// excerpt quotes what stands around a place of a text.
func excerpt(s string, at int) string {
	const before, after = 30, 60
	from, to := max(0, at-before), min(len(s), at+after)
	out := fmt.Sprintf("%q", strings.ToValidUTF8(s[from:to], ""))
	if from > 0 {
		out = "…" + out
	}
	if to < len(s) {
		out += "…"
	}
	return out
}

// A MismatchError tells that a request is not as it was recorded.
type MismatchError struct {
	Agent string
	Turn  int
	File  string // of the recording, "" if it has none of the agent
	Line  int
	What  string // the difference: which message, and its first place
}

func (e *MismatchError) Error() string {
	where := ""
	if e.File != "" {
		where = fmt.Sprintf(" (%s line %d)", e.File, e.Line)
	}
	return fmt.Sprintf("replay agent %s, turn %d%s: %s", e.Agent, e.Turn, where, e.What)
}

// Hint says what to do now.
func (e *MismatchError) Hint() string {
	return "replay with the files, instruction and flags of the recorded run, or record it again with --record-to"
}
