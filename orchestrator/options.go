// Package orchestrator carries out one run: an instruction brought to its end by a tree of
// agents with one budget and one journal.
//
// It gives each agent its workspace, grows children when delegate_task asks for them, and
// settles their changes in request order. Where isolation cannot be had it gives up only what
// cannot be done without it, and says so once.
package orchestrator

import (
	"context"
	"runtime"
	"time"

	"skein/agent"
	"skein/agent/journal"
	"skein/agent/model"
	"skein/delegate"
	"skein/sandbox"
	"skein/tools"
	"skein/tools/gate"
	"skein/tools/mask"
)

// Options is one run's configuration. Dir and Client must be set; every other zero value works.
type Options struct {
	Dir       string       // the user's working directory
	Client    model.Client // the model of every agent
	ModelName string       // as the user named it, for the journal
	Params    model.Params // that Client gives the provider, for the journal
	MaxTokens int          // limit of one reply [8192]
	Largest   int          // tokens that the model can write in one reply; 0 if that is not known

	Verify      string     // command that must succeed before an agent that may write may finish; "" for none
	VerifyMerge string     // command that must succeed on what a merge makes of the tree, before it is applied; "" for none
	OnConflict  OnConflict // what becomes of a change that does not merge [resolve]
	Readers     Readers    // what readers work in [live]

	Mode   delegate.Mode // what children are told; delegate.Off is --single [task-only]
	Access gate.Access   // [confirm]
	Asker  gate.Asker    // nil: nobody can be asked
	Each   bool          // at gate.Confirm writers are asked about what they do in their copies, too
	Tools  []string      // names of the built-in tools offered; nil offers all, empty none
	Own    []tools.Tool  // the caller's own, offered to every agent after those; their calls may overlap

	Boxes  // what holds commands
	Limits // of the run and of each child

	Cache  string // where copies live; "" = the user's cache folder
	Copies string // how they are made: auto, overlay or fresh [auto]

	Price       *model.Price // of the model; nil leaves costs unknown
	ChildModels []ChildModel // other models that children can be given; none leaves them the parent's
	Form        *agent.Form  // of the parent's final answer; nil leaves it free
	Mask        *mask.Mask   // hides secrets in tool results and in the journal; nil hides nothing

	Session string              // id of the session; "" makes one
	Date    time.Time           // that models are told; zero: of Now. A replay gives the recorded one
	Now     func() time.Time    // nil: time.Now
	Watch   func(journal.Event) // told of every event, in journal order, one at a time
	Control *Control            // reaches into the run while it goes on; nil: nobody does
}

// Boxes are the part of [Options] about what holds the commands of agents.
type Boxes struct {
	NoSandbox bool                                      // run commands without a box (--sandbox off)
	AllowNet  bool                                      // commands in boxes have the host's network (--allow-net)
	Readable  []string                                  // what boxes show of the host besides (--readable); see [sandbox.Policy]
	Probe     func(ctx context.Context, net bool) error // finds out whether boxes hold here; nil: [sandbox.Probe]
	Init      string                                    // program that serves as a box's init; see [sandbox.Policy]
	Environ   []string                                  // the user's environment, from which boxes get the harmless part
}

// Limits are the part of [Options] about how much a run and each of its children may do.
type Limits struct {
	Jobs        int // agents at work at once [8]
	ProcessJobs int // commands in flight over the whole run [number of CPUs]
	MaxDepth    int // levels of children [1]
	MaxChildren int // children per run [64]
	MaxTurns    int // of the parent [50]
	ChildTurns  int // of each child [30]

	Timeout   time.Duration // of the run [none]
	ChildTime time.Duration // of each child, counted from its slot [15m]
	AskTime   time.Duration // for a person's answer; then it is no [10m]

	Budget         int64   // tokens of the whole run [none]
	BudgetUSD      float64 // dollars of the whole run; needs Price [none]
	ChildBudget    int64   // tokens of each child, out of Budget [none]
	ChildBudgetUSD float64 // dollars of each child, out of BudgetUSD; needs prices [none]
	ConfirmUSD     float64 // a person is asked before children start whose first requests cost more dollars; needs prices [off]
}

// OnConflict says what happens when a writer's change does not merge. What is not merged in the
// end is kept and its parent told, always.
type OnConflict string

// What may happen.
const (
	Resolve OnConflict = "resolve" // a child of its own merges it; where none does, as Report
	Report  OnConflict = "report"  // later writers of the batch go on without it
	Stop    OnConflict = "stop"    // all later changes of the batch are kept, too
)

// An Outcome is how a run ended.
type Outcome struct {
	Stop    agent.Stop // why it ended
	Cause   string     // in words, for every stop but completed
	Err     error      // the model's error, for model-error
	Answer  string     // the last text of the parent, whatever the stop
	Unasked bool       // something was refused because nobody answered
	Kept    int        // changes that were not merged and are kept
	Session string
	Dir     string // the workspace the run worked in

	// The changes that are kept because nobody answered whether to merge them, as they are kept.
	Unmerged []string
}

func (o Options) withDefaults() Options {
	defaults(&o.MaxTokens, 8192)
	defaults(&o.Mode, delegate.TaskOnly)
	defaults(&o.Access, gate.Confirm)
	defaults(&o.Readers, Live)
	defaults(&o.OnConflict, Resolve)
	defaults(&o.Jobs, 8)
	defaults(&o.ProcessJobs, runtime.NumCPU())
	defaults(&o.MaxDepth, 1)
	defaults(&o.MaxChildren, 64)
	defaults(&o.MaxTurns, 50)
	defaults(&o.ChildTurns, 30)
	defaults(&o.AskTime, 10*time.Minute)
	defaults(&o.ChildTime, 15*time.Minute)
	if o.Control == nil {
		o.Control = &Control{}
	}
	if o.Probe == nil {
		o.Probe = sandbox.Probe
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Date.IsZero() {
		o.Date = o.Now()
	}
	if o.Session == "" {
		o.Session = journal.NewID(o.Now())
	}
	return o
}

// sandbox is the value of --sandbox, as the journal has it.
func (o Options) sandbox() string {
	if o.NoSandbox {
		return "off"
	}
	return "auto"
}

func defaults[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
