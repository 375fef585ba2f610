package orchestrator

import (
	"context"
	"strconv"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/tools"
	"skein/tools/files"
	"skein/tools/gate"
)

// A node is one agent in the tree of a run. It belongs to the goroutine that runs it.
type node struct {
	run     *run
	ordinal string
	depth   int
	place   *place
	policy  gate.Policy
	reads   *files.Record
	tools   map[string]tools.Tool
	talk    *model.Transcript
	engine  *engine
	clocks  clocks
	quit    func(error)     // ends a child for a cause; nil for the parent
	title   string          // of a child's task
	purse   *purse          // made when it begins to work
	told    map[string]bool // of which limits it was warned
	read    model.Count     // tokens of its last request

	born     int // children so far: their ordinals count up
	calls    int
	denied   denials
	acted    bool // it did something that may have changed its workspace
	commands []tools.Command
	verified *tools.Command // its check as it ended last; nil if it has none
}

// newNode makes an agent that works in a place.
func (r *run) newNode(ordinal string, depth int, p *place, policy gate.Policy) *node {
	reads := &files.Record{}
	return &node{run: r, ordinal: ordinal, depth: depth, place: p, policy: policy, reads: reads, tools: r.kit(reads), engine: r.engines[0], told: map[string]bool{}}
}

// begin starts the conversation: messages that others hold already, then one of the harness's.
func (n *node) begin(front []model.Message, first ...model.Message) error {
	n.talk = model.NewTranscript(n.engine.Client, front...)
	for _, m := range first {
		if err := n.talk.Append(m); err != nil {
			return err
		}
		talk := n.talk.Messages()
		n.record(&journal.Message{Message: talk[len(talk)-1]}) // with its raw form
	}
	return nil
}

// work runs the agent to its end. Its ctx carries a slot.
func (n *node) work(ctx context.Context, maxTurns int, form *agent.Form) (agent.Outcome, error) {
	n.purse = n.openPurse()
	n.record(&journal.AgentStarted{Workspace: n.place.ws.Path, Context: len(n.talk.Messages())})
	return agent.Run(ctx, agent.Options{
		Ordinal: n.ordinal, Client: n.engine.Client, Tools: n.engine.tools, Batch: n.batch,
		Budget: n.purse, Near: n.near, Work: n.workTime,
		MaxTurns: maxTurns, MaxTokens: n.engine.MaxTokens, Largest: n.engine.Largest,
		Check: n.verify(), Form: form, Record: n.record,
	}, n.talk)
}

// workTime gives the context of the agent's work. When that is over its children are, too, and
// what is left to do needs a slot of its own.
func (n *node) workTime(ctx context.Context) (context.Context, context.CancelFunc) {
	work, done := n.clocks.workTime(ctx)
	return work, func() {
		done()
		_ = n.run.sched.Regain(ctx) // else ctx has ended, and the closing turn sees that
	}
}

func (n *node) record(p journal.Payload) {
	if r, ok := p.(*journal.Reply); ok {
		n.read = r.Usage.Prompt()
	}
	n.run.journal.Append(n.ordinal, p)
}

// nextChild gives the next child's ordinal.
func (n *node) nextChild() string {
	n.born++
	return n.ordinal + "." + strconv.Itoa(n.born)
}

// boxed reports whether the agent's commands run in a box.
func (n *node) boxed() bool { return n.place.ws.Exec != nil && !n.run.o.NoSandbox }

// since is the time passed, by the run's clock.
func (r *run) since(t time.Time) time.Duration { return r.o.Now().Sub(t) }
